package backends

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
)

func TestErrorText(t *testing.T) {
	orders := EntityID{"orders", DeadLetterQueue}
	for want, err := range map[string]error{
		"peek orders/$DeadLetterQueue: not found":             &Error{Op: "peek", Entity: orders, Code: NotFound},
		"list entities: denied: no Manage claim":              &Error{Op: "list entities", Code: Denied, Err: errors.New("no Manage claim")},
		"move orders/$DeadLetterQueue: unsupported operation": unsupported("move", orders),
		"open: unsupported":                                   &Error{Op: "open", Code: Unsupported},
		"open: outcome unknown: EOF":                          &Error{Op: "open", Err: io.EOF},
		"send: too large":                                     Batch([]error{nil, &Error{Op: "send", Code: TooLarge}}),
		"2 messages failed; the first: send: not carried":     Batch([]error{&Error{Op: "send", Code: NotCarried}, nil, io.EOF}),
	} {
		if got := err.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestCodesHaveNames(t *testing.T) {
	names := map[string]bool{}
	for c := Unknown; c <= Unsupported; c++ {
		names[c.String()] = true
	}
	if want := int(Unsupported) + 1; len(names) != want || names[""] {
		t.Errorf("%d codes have %d names", want, len(names))
	}
}

func TestCodeOf(t *testing.T) {
	gone, lost := &Error{Op: "move", Code: NotFound}, &Error{Op: "settle", Code: LockLost}
	for name, c := range map[string]struct {
		err  error
		code Code
		ok   bool
	}{
		"nothing":                        {nil, Unknown, false},
		"another error":                  {io.EOF, Unknown, false},
		"an error":                       {gone, NotFound, true},
		"a wrapped one":                  {fmt.Errorf("while moving: %w", gone), NotFound, true},
		"the outer of two":               {&Error{Code: Unavailable, Err: gone}, Unavailable, true},
		"outcome unknown":                {&Error{Op: "send"}, Unknown, true},
		"a batch of one":                 {Batch([]error{nil, gone}), NotFound, true},
		"a batch that agrees":            {fmt.Errorf("all: %w", Batch([]error{gone, gone})), NotFound, true},
		"a batch that does not":          {Batch([]error{gone, lost}), Unknown, true},
		"a batch that does not, swapped": {Batch([]error{lost, gone, lost}), Unknown, true},
		"a batch in part without codes":  {Batch([]error{gone, io.EOF}), Unknown, true},
		"a batch without codes":          {Batch([]error{io.EOF, io.EOF}), Unknown, false},
	} {
		code, ok := CodeOf(c.err)
		if code != c.code || ok != c.ok {
			t.Errorf("%s: got %v, %v, want %v, %v", name, code, ok, c.code, c.ok)
		}
		if IsCode(c.err, c.code) != c.ok || IsCode(c.err, Denied) {
			t.Errorf("%s: IsCode says otherwise than CodeOf", name)
		}
	}
}

func TestBatch(t *testing.T) {
	if err := Batch(nil); err != nil {
		t.Errorf("of nothing: %v", err)
	}
	if err := Batch(make([]error, 3)); err != nil {
		t.Errorf("of no errors: %v", err)
	}
	errs := []error{nil, io.EOF, nil, context.Canceled}
	err := Batch(errs)
	if got := ItemErrors(err, len(errs)); !slices.Equal(got, errs) {
		t.Errorf("spread again: %v", got)
	}
	if !errors.Is(err, io.EOF) || !errors.Is(err, context.Canceled) || errors.Is(err, io.ErrShortWrite) {
		t.Errorf("the causes are not to be found in %v", err)
	}
}

func TestItemErrors(t *testing.T) {
	if got := ItemErrors(nil, 2); !slices.Equal(got, []error{nil, nil}) {
		t.Errorf("of success: %v", got)
	}
	if got := ItemErrors(io.EOF, 2); !slices.Equal(got, []error{io.EOF, io.EOF}) {
		t.Errorf("of an error for the whole call: %v", got)
	}
	wrapped := fmt.Errorf("while sending: %w", Batch([]error{nil, io.EOF}))
	if got := ItemErrors(wrapped, 3); !slices.Equal(got, []error{nil, io.EOF, nil}) {
		t.Errorf("of a wrapped batch: %v", got)
	}
	if got := ItemErrors(&BatchError{[]ItemError{{5, io.EOF}}}, 2); !slices.Equal(got, []error{nil, nil}) {
		t.Errorf("of an index beyond the call: %v", got)
	}
}

func TestErrorsUnwrap(t *testing.T) {
	err := fmt.Errorf("here: %w", &Error{Op: "lease", Code: Unknown, Err: context.DeadlineExceeded})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v does not wrap its cause", err)
	}
}

func TestActionNames(t *testing.T) {
	for a, want := range map[Action]string{0: "none", Complete: "complete", Abandon: "abandon", Defer: "defer", DeadLetter: "dead-letter"} {
		if got := a.String(); got != want {
			t.Errorf("action %d is %q, want %q", a, got, want)
		}
	}
}
