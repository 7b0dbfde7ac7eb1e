//go:build unix

package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the commands of the README print into it")

// session is one console block of the README: commands behind "$ ", what they print below.
type session struct {
	start, end int // of the block's text in the README
	commands   []string
	outputs    []string
}

// TestReadme runs the tour of the README, every command in the order it stands there, and
// compares what they print with what stands below them. Run it with -update after a change.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	sessions := consoleBlocks(string(text))
	if len(sessions) == 0 {
		t.Fatal("the README has no console block")
	}
	var commands []string
	for _, s := range sessions {
		commands = append(commands, s.commands...)
	}
	got := runSession(t, commands)
	if *update {
		updated := writeOutputs(string(text), sessions, got)
		if err := os.WriteFile("README.md", []byte(updated), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	i := 0
	for _, s := range sessions {
		for j, command := range s.commands {
			if lasting(got[i]) != lasting(s.outputs[j]) {
				t.Errorf("$ %s\nprints\n%s\nthe README says\n%s", command, got[i], s.outputs[j])
			}
			i++
		}
	}
}

// consoleBlocks finds the console blocks of a text.
func consoleBlocks(text string) []session {
	const fence = "```console\n"
	var out []session
	for from := 0; ; {
		start := strings.Index(text[from:], fence)
		if start < 0 {
			return out
		}
		start += from + len(fence)
		end := start + strings.Index(text[start:], "```\n")
		s := session{start: start, end: end}
		for line := range strings.Lines(text[start:end]) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				s.commands = append(s.commands, strings.TrimSuffix(command, "\n"))
				s.outputs = append(s.outputs, "")
				continue
			}
			s.outputs[len(s.outputs)-1] += line
		}
		out = append(out, s)
		from = end
	}
}

// runSession runs commands in one shell, in an empty home, and returns what each printed
// to either stream.
func runSession(t *testing.T, commands []string) []string {
	t.Helper()
	const mark = "=== end of command"
	var script strings.Builder
	for _, c := range commands {
		fmt.Fprintf(&script, "%s\necho '%s'\n", c, mark)
	}
	home := t.TempDir()
	shell := exec.CommandContext(t.Context(), "sh")
	shell.Dir = home
	shell.Env = []string{"HOME=" + home, "TERM=dumb", "PATH=" + filepath.Dir(buildDlq(t)) + ":" + os.Getenv("PATH")}
	shell.Stdin = strings.NewReader(script.String())
	printed, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	text := strings.ReplaceAll(string(printed), home, "~")
	outputs := strings.Split(text, mark+"\n")
	if len(outputs) != len(commands)+1 {
		t.Fatalf("%d commands printed %d outputs:\n%s", len(commands), len(outputs)-1, text)
	}
	return outputs[:len(commands)]
}

// writeOutputs puts what was printed under the commands.
func writeOutputs(text string, sessions []session, got []string) string {
	var b strings.Builder
	from, i := 0, 0
	for _, s := range sessions {
		b.WriteString(text[from:s.start])
		for _, c := range s.commands {
			b.WriteString("$ " + c + "\n" + got[i])
			i++
		}
		from = s.end
	}
	return b.String() + text[from:]
}

var (
	jobIDs = regexp.MustCompile(`\b[0-9a-hjkmnp-tv-z]{9}\b`)
	ages   = regexp.MustCompile(`\b[0-9]+[smhd]\b`)
	times  = regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z|[0-9]{8}T[0-9.]+Z`)
	gaps   = regexp.MustCompile(` +`)
)

// lasting replaces what differs from one run to the next: times, ages, IDs of jobs, and
// the spaces that line them up.
func lasting(output string) string {
	output = times.ReplaceAllString(output, "TIME")
	output = ages.ReplaceAllString(output, "AGE")
	output = jobIDs.ReplaceAllString(output, "JOB")
	return gaps.ReplaceAllString(output, " ")
}
