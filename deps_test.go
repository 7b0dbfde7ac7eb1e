package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// module is the path of this module and the prefix of its packages.
const module = "dlq"

// A layer says what one package may import of this module, and why no more. Paths are
// relative to the module; "x/..." means x and everything below it.
type layer struct {
	pkg string
	may []string
	why string
}

// layers are the walls of the house. A package that is not listed fails the test: decide
// where it stands before it grows.
var layers = []layer{
	{".", []string{"cmd"}, "main only starts cmd, so that everything can be tested without a process"},
	{"cmd", []string{"..."}, "cmd is the one package that knows all the others"},

	{
		"tui",
		[]string{"tui/...", "backends", "backends/message", "backends/sqlfilter", "backends/payload", "resubmit", "export"},
		"the UI works on any backend: it never knows a driver or the engine",
	},
	{"tui/table", []string{"tui/textview", "tui/theme"}, "the table draws rows of anything"},
	{"tui/textview", nil, "the sanitiser is used by all that prints, so it depends on nothing of ours"},
	{"tui/theme", nil, "its init has to run before that of bubbletea, so it imports as little as it can"},

	{
		"resubmit",
		[]string{"backends", "backends/message", "backends/sqlfilter", "backends/payload"},
		"moving messages works on any backend, and knows no face and no file format",
	},
	{
		"export",
		[]string{"backends", "backends/message", "backends/sqlfilter", "backends/payload"},
		"the file format works on any backend, and knows no face and no job",
	},

	{"backends", []string{"backends/message"}, "the interface knows no driver"},
	{"backends/message", nil, "the model of a message stands at the bottom"},
	{"backends/sqlfilter", []string{"backends/message"}, "the language works on a message, wherever it came from"},
	{"backends/amqp", []string{"backends/message"}, "the codec is bytes and values, without policy"},
	{"backends/sqsmsg", []string{"backends/message"}, "what a message of SQS is, for the server and the driver alike"},
	{"backends/payload", []string{"backends/message", "backends/amqp"}, "decoding a body for the eye needs no backend"},
	{"backends/backendtest", []string{"backends", "backends/message"}, "the conformance suite must not favour a driver"},
	{"backends/retry", []string{"backends", "backends/message"}, "a decorator goes around any backend"},
	{"backends/throttle", []string{"backends", "backends/message"}, "a decorator goes around any backend"},
	{"backends/audit", []string{"backends", "backends/message"}, "a decorator goes around any backend"},
	{
		"backends/local",
		[]string{"backends", "backends/message", "backends/broker", "backends/broker/store", "backends/sqsmsg"},
		"the driver joins the interface to the engine, and nothing else",
	},

	{
		"backends/broker",
		[]string{"backends/message", "backends/broker/store", "backends/sqlfilter"},
		"the engine is a state machine that knows neither who drives it nor a wire",
	},
	{
		"backends/broker/amqpd",
		[]string{"backends/amqp", "backends/broker", "backends/message", "backends/broker/sas", "backends/sqlfilter"},
		"the AMQP server puts the engine on the wire, and knows no driver and no HTTP",
	},
	{
		"backends/broker/atomd",
		[]string{"backends/broker", "backends/message", "backends/broker/sas", "backends/sqlfilter"},
		"the management server puts the engine on HTTP, and knows no AMQP",
	},
	{
		"backends/broker/namespace",
		[]string{"backends/broker", "backends/message", "backends/broker/sas", "backends/sqlfilter"},
		"what a namespace is to hold and may hold knows no wire",
	},
	{
		"backends/broker/sqsd",
		[]string{"backends/broker", "backends/broker/sigv4", "backends/message", "backends/sqsmsg"},
		"the SQS server puts the engine on the wire, and knows no driver and no keys",
	},
	{"backends/broker/sigv4", nil, "a signature is verified whoever asks and whatever for"},
	{"backends/broker/sas", nil, "keys and signatures know neither who asks nor over which wire"},
	{"backends/broker/port", nil, "a port hands on connections and knows not what is said over them"},
	{"backends/broker/store", []string{"backends/message"}, "the store keeps messages and knows no queue's rules"},
	{"backends/broker/store/storetest", nil, "a disk that fails knows nothing of what is written on it"},
}

// A ban forbids an import from outside the module to all packages but some, or only to some.
type ban struct {
	imported string   // a package, or "x/..."
	from     []string // the packages it is forbidden to; nil: all
	except   []string // the packages that may
	why      string
}

var bans = []ban{
	{
		imported: "github.com/charmbracelet/bubbletea/...", except: []string{"tui"},
		why: "importing bubbletea queries the terminal; only package tui may, after tui/theme has cured it",
	},
	{
		imported: "github.com/charmbracelet/bubbles/...", except: []string{"tui"},
		why: "bubbles bring bubbletea along, which only package tui may import",
	},
	{
		imported: "github.com/charmbracelet/lipgloss/...", except: []string{"tui", "tui/table", "tui/theme"},
		why: "styles belong to the UI; the commands use the terminal's own colours",
	},
	{
		imported: "github.com/cockroachdb/pebble/v2/...", except: []string{"backends/broker/store", "backends/broker/store/storetest", "backends/local"},
		why: "the engine's disk is behind the store, so that it can be replaced",
	},
	{
		imported: "github.com/spf13/...", except: []string{"cmd"},
		why: "the command line ends in package cmd",
	},
	{
		imported: "net/...", from: []string{"backends/broker", "backends/broker/store", "backends/message", "backends/amqp", "backends/sqlfilter"},
		why: "the engine and the codecs know no network",
	},
	{
		imported: "testing", why: "the testing package registers flags: it belongs into tests",
		except: []string{"backends/backendtest"},
	},
}

// standardOnly are the packages that import nothing from outside the standard library and
// the module.
var standardOnly = map[string]string{
	"backends":           "the interface costs its users no dependency",
	"backends/message":   "the model of a message depends on the standard library alone",
	"backends/amqp":      "the codec depends on the standard library alone",
	"backends/sqlfilter": "the language depends on the standard library alone",
}

// vague are package names that say nothing about what is inside.
var vague = []string{"util", "utils", "common", "shared", "helper", "helpers", "misc", "types", "models"}

// A node is what go list tells about one package.
type node struct {
	ImportPath string
	Name       string
	Dir        string
	Standard   bool
	GoFiles    []string
	Imports    []string
}

// checkImports returns one line for every forbidden import, with the reason.
func checkImports(packages []node) []string {
	standard := map[string]bool{"C": true, "unsafe": true}
	for _, p := range packages {
		standard[p.ImportPath] = p.Standard
	}
	var problems []string
	for _, p := range packages {
		rel, ours := relative(p.ImportPath)
		if !ours {
			continue
		}
		if slices.Contains(vague, p.Name) {
			problems = append(problems, fmt.Sprintf("%s: the name %q says nothing; name what is inside", p.ImportPath, p.Name))
		}
		for _, imported := range p.Imports {
			if why := forbidden(rel, imported, standard[imported]); why != "" {
				problems = append(problems, fmt.Sprintf("%s imports %s: %s", p.ImportPath, imported, why))
			}
		}
		if !slices.ContainsFunc(layers, func(l layer) bool { return l.pkg == rel }) {
			problems = append(problems, p.ImportPath+" stands in no layer; add it to deps_test.go with what it may import and why")
		}
	}
	return problems
}

// forbidden returns why the package may not have that import, or "".
func forbidden(pkg, imported string, standard bool) string {
	if target, ours := relative(imported); ours {
		for _, l := range layers {
			if l.pkg == pkg && !slices.ContainsFunc(l.may, func(pattern string) bool { return within(target, pattern) }) {
				return l.why
			}
		}
		return ""
	}
	for _, b := range bans {
		if within(imported, b.imported) && (b.from == nil || slices.Contains(b.from, pkg)) && !slices.Contains(b.except, pkg) {
			return b.why
		}
	}
	if why := standardOnly[pkg]; why != "" && !standard {
		return why
	}
	return ""
}

// relative cuts the module from the path of one of its packages.
func relative(importPath string) (string, bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// within reports whether p is the pattern or, if that ends in "...", below it.
func within(p, pattern string) bool {
	root, tree := strings.CutSuffix(pattern, "...")
	root = strings.TrimSuffix(root, "/")
	return p == root || tree && (root == "" || strings.HasPrefix(p, root+"/"))
}

func TestImportRules(t *testing.T) {
	packages := listPackages(t)
	for _, problem := range checkImports(packages) {
		t.Error(problem)
	}
}

// TestImportRulesBite adds forbidden imports to a small house that is otherwise in order.
func TestImportRulesBite(t *testing.T) {
	sound := []node{
		{ImportPath: "dlq", Name: "main", Imports: []string{"dlq/cmd", "os"}},
		{ImportPath: "dlq/cmd", Name: "cmd", Imports: []string{"dlq/tui", "dlq/backends/local"}},
		{ImportPath: "dlq/tui", Name: "tui", Imports: []string{"dlq/backends", "github.com/charmbracelet/bubbletea"}},
		{ImportPath: "os", Standard: true},
		{ImportPath: "net/http", Standard: true},
	}
	if got := checkImports(sound); len(got) > 0 {
		t.Fatalf("a sound house has problems: %q", got)
	}
	tests := []struct {
		pkg, imported string
		why           string // a part of the reason
	}{
		{"dlq", "dlq/tui", "main only starts cmd"},
		{"dlq/tui", "dlq/backends/local", "never knows a driver"},
		{"dlq/tui", "dlq/backends/broker", "never knows a driver or the engine"},
		{"dlq/tui/textview", "dlq/tui/theme", "depends on nothing of ours"},
		{"dlq/resubmit", "dlq/export", "no file format"},
		{"dlq/export", "dlq/resubmit", "no job"},
		{"dlq/resubmit", "dlq/tui", "knows no face"},
		{"dlq/backends", "dlq/backends/local", "knows no driver"},
		{"dlq/backends/message", "dlq/backends", "at the bottom"},
		{"dlq/backends/message", "github.com/google/go-cmp/cmp", "standard library alone"},
		{"dlq/backends/amqp", "dlq/backends", "without policy"},
		{"dlq/backends/sqlfilter", "github.com/itchyny/gojq", "standard library alone"},
		{"dlq/backends/broker", "dlq/backends", "knows neither who drives it"},
		{"dlq/backends/broker", "dlq/backends/amqp", "nor a wire"},
		{"dlq/backends/broker", "net/http", "know no network"},
		{"dlq/backends/broker/store", "net", "know no network"},
		{"dlq/backends/throttle", "dlq/backends/local", "around any backend"},
		{"dlq/cmd", "github.com/charmbracelet/bubbletea", "queries the terminal"},
		{"dlq/tui/table", "github.com/charmbracelet/bubbles/key", "bring bubbletea along"},
		{"dlq/cmd", "github.com/charmbracelet/lipgloss", "belong to the UI"},
		{"dlq/backends/broker", "github.com/cockroachdb/pebble/v2", "behind the store"},
		{"dlq/tui", "github.com/spf13/cobra", "ends in package cmd"},
		{"dlq/cmd", "testing", "belongs into tests"},
		{"dlq/backends/newcomer", "os", "stands in no layer"},
	}
	for _, tt := range tests {
		t.Run(path.Base(tt.pkg)+" imports "+tt.imported, func(t *testing.T) {
			bad := append(slices.Clone(sound), node{ImportPath: tt.pkg, Name: path.Base(tt.pkg), Imports: []string{tt.imported}})
			got := checkImports(bad)
			if len(got) != 1 || !strings.Contains(got[0], tt.why) || !strings.Contains(got[0], tt.pkg) {
				t.Errorf("got %q, want one problem of %s that says %q", got, tt.pkg, tt.why)
			}
		})
	}
	if got := checkImports(append(slices.Clone(sound), node{ImportPath: "dlq/cmd", Name: "utils"})); len(got) != 1 {
		t.Errorf("a package named utils: got %q, want one problem", got)
	}
}

// TestNoInit keeps start-up free of hidden work: the one init is the cure in tui/theme.
func TestNoInit(t *testing.T) {
	for _, p := range listPackages(t) {
		rel, ours := relative(p.ImportPath)
		if !ours || rel == "tui/theme" {
			continue
		}
		for _, name := range p.GoFiles {
			file := filepath.Join(p.Dir, name)
			src, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			if hasInit(src) {
				t.Errorf("%s/%s has an init function: only tui/theme may, because nobody can see what runs before main", p.ImportPath, name)
			}
		}
	}
}

func TestNoInitBites(t *testing.T) {
	for src, want := range map[string]bool{
		"package p\nfunc init() {}":                 true,
		"package p\ntype t int\nfunc (t) init() {}": false,
		"package p\nfunc initial() {}":              false,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "p.go", src, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := hasInit(file); got != want {
			t.Errorf("hasInit(%q) = %t, want %t", src, got, want)
		}
	}
}

func hasInit(file *ast.File) bool {
	return slices.ContainsFunc(file.Decls, func(d ast.Decl) bool {
		f, ok := d.(*ast.FuncDecl)
		return ok && f.Recv == nil && f.Name.Name == "init"
	})
}

// listPackages returns the packages of the module and all they depend on.
func listPackages(t *testing.T) []node {
	t.Helper()
	var stderr bytes.Buffer
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Name,Dir,Standard,GoFiles,Imports", "./...")
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	var packages []node
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p node
		switch err := dec.Decode(&p); {
		case errors.Is(err, io.EOF):
			return packages
		case err != nil:
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}
