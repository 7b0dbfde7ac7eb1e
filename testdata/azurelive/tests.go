package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// result is what became of the tests of one package.
type result struct {
	name     string
	live     map[string]bool   // those that need a namespace
	verdicts map[string]string // PASS, FAIL or SKIP, of tests and subtests
	log      string
	took     time.Duration
	crashed  error // it ended before its last test, or late
}

// verdict is a line that says how a test went. The mark before it, which -test.v=test2json asks
// for, tells it from what the test prints.
var verdict = regexp.MustCompile(`\x16[ \t]*--- (PASS|FAIL|SKIP): (\S+) \(`)

// runPackage runs the tests of a package twice: as they are without a namespace, when those that
// need one skip themselves, and then those with ours.
func runPackage(ctx context.Context, o options, dir, binary string, env []string, excluded map[string]string) (result, error) {
	r := result{name: filepath.Base(dir), live: map[string]bool{}}
	offline, _, err := runTests(ctx, dir, binary, append(slices.Clip(env), "AZURE_RECORD_MODE=playback"), "-test.timeout=1m")
	if err != nil {
		return r, fmt.Errorf("the tests of %s fail without a namespace too: %w\n%s", r.name, err, offline)
	}
	for name, v := range verdicts(offline) {
		r.live[name] = v == "SKIP"
	}
	args := []string{"-test.timeout=" + o.timeout.String()}
	if o.run != "" {
		args = append(args, "-test.run="+o.run)
	}
	if len(excluded) > 0 {
		args = append(args, "-test.skip="+exactly(slices.Sorted(maps.Keys(excluded))))
	}
	r.log, r.took, r.crashed = runTests(ctx, dir, binary, env, args...)
	r.verdicts = verdicts(r.log)
	var exit *exec.ExitError
	if r.crashed != nil && !errors.As(r.crashed, &exit) {
		return r, r.crashed
	}
	if !strings.Contains(r.log, "panic: ") { // then it only says that tests failed
		r.crashed = nil
	}
	return r, nil
}

func runTests(ctx context.Context, dir, binary string, env []string, args ...string) (log string, took time.Duration, err error) {
	began := time.Now()
	c := exec.CommandContext(ctx, binary, append(args, "-test.v=test2json")...)
	c.Dir, c.Env = dir, env
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err = c.Run()
	return out.String(), time.Since(began), err
}

func verdicts(log string) map[string]string {
	all := map[string]string{}
	for _, m := range verdict.FindAllStringSubmatch(log, -1) {
		all[m[2]] = m[1]
	}
	return all
}

// exactly is a pattern for these tests and subtests alone.
func exactly(names []string) string {
	patterns := make([]string, len(names))
	for i, name := range names {
		levels := strings.Split(name, "/")
		for j := range levels {
			levels[j] = "^" + regexp.QuoteMeta(levels[j]) + "$"
		}
		patterns[i] = strings.Join(levels, "/")
	}
	return strings.Join(patterns, "|")
}

// report prints what became of everything, and fails unless all that is not excluded passed.
func report(results []result, excluded map[string]string, partial bool) error {
	var problems []string
	unused := maps.Clone(excluded)
	live, passed := 0, 0
	for _, r := range results {
		ok, all := 0, 0
		for name, needs := range r.live {
			if strings.Contains(name, "/") {
				continue
			}
			if needs {
				all++
				if r.verdicts[name] == "PASS" {
					ok++
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(r.verdicts)) {
			switch r.verdicts[name] {
			case "FAIL":
				problems = append(problems, fmt.Sprintf("%s: %s failed", r.name, name))
				fmt.Println(section(r.log, name))
			case "SKIP":
				problems = append(problems, fmt.Sprintf("%s: %s skipped itself", r.name, name))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(r.live)) {
			if _, left := excluded[name]; left {
				delete(unused, name)
			} else if r.verdicts[name] == "" && !partial && !strings.Contains(name, "/") {
				problems = append(problems, fmt.Sprintf("%s: %s did not run", r.name, name))
			}
		}
		if r.crashed != nil {
			problems = append(problems, fmt.Sprintf("%s: the tests did not end: %v\n%s", r.name, r.crashed, tail(r.log)))
		}
		live, passed = live+all, passed+ok
		fmt.Printf("%-22s %3d live tests, %3d passed, in %s\n", r.name, all, ok, r.took.Round(time.Second))
	}
	for _, name := range slices.Sorted(maps.Keys(unused)) {
		problems = append(problems, name+" is excluded and does not exist")
	}
	fmt.Printf("%-22s %3d live tests, %3d passed\n", "all", live, passed)
	for _, name := range slices.Sorted(maps.Keys(excluded)) {
		fmt.Printf("excluded: %s: %s\n", name, excluded[name])
	}
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "\n"))
	}
	return nil
}

// section is what a test printed.
func section(log, name string) string {
	begin := strings.Index(log, "=== RUN   "+name+"\n")
	if begin < 0 {
		return ""
	}
	rest := log[begin:]
	end := strings.Index(rest, "--- FAIL: "+name+" (")
	if end < 0 {
		return rest
	}
	// What testify reports follows the verdict, indented.
	after, _, _ := strings.Cut(rest[end:], "\x16=== ")
	return strings.ReplaceAll(rest[:end]+after, "\x16", "")
}

// tail is the end of a log.
func tail(log string) string {
	const most = 4000
	return strings.ReplaceAll(log[max(len(log)-most, 0):], "\x16", "")
}
