package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

//go:embed config.json
var config []byte

// distance stands for the way to Azure: TestReceiveWithDifferentWaitTime fails where 1,000 messages
// come without a pause of 20 ms between them.
const distance = "delay/receive=30ms:every:3"

// noManageKey is the key of config.json.
const noManageKey = "SharedAccessKeyName=NoManage;SharedAccessKey=bm90IGEgc2VjcmV0LCBhIHRlc3Q="

// startNamespaces starts a server for each namespace that the tests want, and returns their
// environment.
func startNamespaces(ctx context.Context, program, work string) (env []string, end func() error, err error) {
	file := filepath.Join(work, "config.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return nil, nil, err
	}
	var ends []func() error
	end = func() error {
		var err error
		for _, e := range ends {
			err = errors.Join(err, e())
		}
		return err
	}
	// A home of its own, so that the local certificate authority of the user is left alone.
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "SERVICEBUS_") && !strings.HasPrefix(kv, "AZURE_") && !strings.HasPrefix(kv, "XDG_") && !strings.HasPrefix(kv, "SSL_CERT_") {
			env = append(env, kv)
		}
	}
	env = append(env, "HOME="+filepath.Join(work, "home"), "AZURE_RECORD_MODE=live")
	for _, limits := range []string{"standard", "premium"} {
		values, stop, err := serve(ctx, program, file, limits, env)
		if err != nil {
			return nil, nil, errors.Join(err, end())
		}
		ends = append(ends, stop)
		env = append(env, variables(values, limits)...)
	}
	return env, end, nil
}

// variables are what the tests call what serve printed.
func variables(printed map[string]string, limits string) []string {
	all := printed["SERVICEBUS_CONNECTION_STRING"]
	endpoint, _, _ := strings.Cut(all, ";")
	host := strings.TrimPrefix(endpoint, "Endpoint=sb://")
	if limits == "premium" {
		return []string{"SERVICEBUS_ENDPOINT_PREMIUM=" + host, "SERVICEBUS_CONNECTION_STRING_PREMIUM=" + all}
	}
	return []string{
		"SERVICEBUS_ENDPOINT=" + host,
		"SERVICEBUS_CONNECTION_STRING=" + all,
		"SERVICEBUS_CONNECTION_STRING_NO_MANAGE=" + endpoint + ";" + noManageKey,
		"SERVICEBUS_CONNECTION_STRING_SEND_ONLY=" + printed["SERVICEBUS_CONNECTION_STRING_SEND_ONLY"],
		"SERVICEBUS_CONNECTION_STRING_LISTEN_ONLY=" + printed["SERVICEBUS_CONNECTION_STRING_LISTEN_ONLY"],
		"SSL_CERT_FILE=" + printed["SSL_CERT_FILE"],
	}
}

// serve starts a server and waits until it is ready. stop ends it and fails unless it ends as it
// should.
func serve(ctx context.Context, program, config, limits string, env []string) (printed map[string]string, stop func() error, err error) {
	c := exec.CommandContext(ctx, program, "serve", "--memory", "--tls", "--limits", limits, "--config", config,
		"--servicebus", "127.0.0.1:0", "--admin", "none", "--sqs", "none", "--fault", distance)
	c.Env = env
	var said bytes.Buffer
	c.Stderr = &said
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 15 * time.Second
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := c.Start(); err != nil {
		return nil, nil, err
	}
	printed = map[string]string{}
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "dlq: ready" {
		name, value, _ := strings.Cut(lines.Text(), "=")
		printed[name] = value
	}
	if lines.Text() != "dlq: ready" {
		return nil, nil, fmt.Errorf("dlq serve --limits %s did not become ready: %w\n%s", limits, c.Wait(), &said)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // lest it waits for a reader
	return printed, func() error {
		if err := c.Process.Signal(os.Interrupt); err != nil {
			return err
		}
		if err := c.Wait(); err != nil {
			return fmt.Errorf("dlq serve --limits %s did not end as it should: %w\n%s", limits, err, &said)
		}
		return nil
	}, nil
}
