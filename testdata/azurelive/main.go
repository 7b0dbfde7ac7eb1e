package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// packages are the folders of the module whose tests run, each from its own.
var packages = []string{".", "admin", "internal"}

//go:embed excluded.txt
var exclusionList string

// mostExcluded is how many tests may be left out.
const mostExcluded = 5

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var o options
	flag.StringVar(&o.dlq, "dlq", "", "use this `program` instead of building one from the sources")
	flag.StringVar(&o.run, "run", "", "only tests that match this `regexp`, as go test -run has it")
	flag.StringVar(&o.keep, "keep", "", "work in this `directory` and leave it there")
	flag.DurationVar(&o.timeout, "timeout", 4*time.Minute, "end a package's tests after that long")
	flag.Parse()
	if err := live(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "azurelive:", err)
		os.Exit(1)
	}
}

type options struct {
	dlq, run, keep string
	timeout        time.Duration
}

func live(ctx context.Context, o options) (err error) {
	work := o.keep
	if work == "" {
		if work, err = os.MkdirTemp("", "azurelive-*"); err != nil {
			return err
		}
		defer os.RemoveAll(work)
	}
	if work, err = filepath.Abs(work); err != nil {
		return err
	}
	excluded, err := readExclusions(exclusionList)
	if err != nil {
		return err
	}
	program := o.dlq
	if program == "" {
		program = filepath.Join(work, "dlq")
		if _, err := run(ctx, "", "go", "build", "-o", program, "."); err != nil {
			return err
		}
	}
	module, err := scratchModule(ctx, work)
	if err != nil {
		return err
	}
	binaries, err := buildTests(ctx, module, work)
	if err != nil {
		return err
	}
	env, end, err := startNamespaces(ctx, program, work)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	return runAll(ctx, o, module, binaries, env, excluded)
}

// buildTests compiles the tests of each package.
func buildTests(ctx context.Context, module, work string) ([]string, error) {
	binaries := make([]string, len(packages))
	for i, p := range packages {
		binaries[i] = filepath.Join(work, filepath.Base(filepath.Join(module, p))+".test")
		if _, err := run(ctx, module, "go", "test", "-c", "-o", binaries[i], "./"+p); err != nil {
			return nil, err
		}
	}
	return binaries, nil
}

// runAll runs the packages at once, since most of what their tests do is wait, and reports.
func runAll(ctx context.Context, o options, module string, binaries, env []string, excluded map[string]string) error {
	results := make([]result, len(packages))
	errs := make([]error, len(packages))
	var wg sync.WaitGroup
	for i, p := range packages {
		wg.Go(func() {
			results[i], errs[i] = runPackage(ctx, o, filepath.Join(module, p), binaries[i], env, excluded)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return report(results, excluded, o.run != "")
}

// run runs a command in a folder and returns what it prints; its errors show whole.
func run(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = dir
	var complaints strings.Builder
	c.Stderr = &complaints
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, complaints.String())
	}
	return out, nil
}

// readExclusions reads a list of tests with reasons.
func readExclusions(list string) (map[string]string, error) {
	excluded := map[string]string{}
	for line := range strings.Lines(list) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, _ := strings.Cut(line, " ")
		if reason = strings.TrimSpace(reason); reason == "" {
			return nil, fmt.Errorf("excluded.txt gives no reason for %s", name)
		}
		excluded[name] = reason
	}
	if len(excluded) > mostExcluded {
		return nil, fmt.Errorf("excluded.txt leaves out %d tests; at most %d may be", len(excluded), mostExcluded)
	}
	return excluded, nil
}
