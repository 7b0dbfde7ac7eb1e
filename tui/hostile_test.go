package tui

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"dlq/backends"
	"dlq/backends/message"
)

// The attacks that must show as text: titles and clipboards (OSC), colours and clearing
// (CSI), C1 controls raw and in UTF-8, bidi overrides, tag characters, line separators,
// piled marks, bytes that are no text.
const attack = "\x1b]0;owned\x07\x1b]52;c;cm0gLXJmIC8=\x07\x1b[2J\x1b[31mred \x9b31m \u009b1m \u202eevil\u202c \u2028 \U000e0041 a\u0301\u0301\u0301\u0301\u0301\u0301 \r\n\tend \xff\xfe \u200b\ufeff|"

// onlyMessage is a backend that holds one message in an entity with a given name.
type onlyMessage struct {
	backends.Backend
	name string
	m    *message.Message
}

func (b onlyMessage) Entities(context.Context, backends.EntityQuery) iter.Seq2[backends.Entity, error] {
	return func(yield func(backends.Entity, error) bool) {
		id := backends.EntityID{Name: b.name}
		yield(backends.Entity{
			ID: id, Kind: backends.EntityKind(b.name), DeadLetters: id.DeadLetters(),
			Counts: backends.Counts{Active: -1, DeadLetter: 1, Source: b.name},
		}, nil)
	}
}

func (b onlyMessage) Peek(context.Context, backends.EntityID, backends.PeekOptions) iter.Seq2[*message.Message, error] {
	return func(yield func(*message.Message, error) bool) { yield(b.m, nil) }
}

func (b onlyMessage) Close() error { return nil }

// hostileMessage puts a text wherever a message can hold one.
func hostileMessage(text string) *message.Message {
	m := &message.Message{
		ID: message.String(text), CorrelationID: message.Binary(text), Subject: &text, ContentType: &text, ContentEncoding: &text,
		To: &text, ReplyTo: &text, SessionID: &text, ReplyToSessionID: &text, UserID: []byte(text),
		Body:        message.DataBody([]byte(text)),
		Annotations: message.Map{{Key: message.Symbol(text), Value: message.Symbol(text)}},
		Footer:      message.Map{{Key: message.String(text), Value: message.List{message.String(text)}}},
		System:      []message.Attribute{{Name: text, Value: message.String(text)}},
		Broker:      message.Broker{SequenceNumber: 7, EnqueuedTime: begin, DeadLetterSource: text},
	}
	m.Properties = message.Properties{
		{Name: message.DeadLetterReasonProperty, Value: message.String(text)},
		{Name: message.DeadLetterDescriptionProperty, Value: message.String(text)},
		{Name: text, Value: message.String(text)},
		{Name: "NServiceBus.ExceptionInfo.Message", Value: message.String(text)},
		{Name: "m" + text, Value: message.Map{{Key: message.String(text), Value: message.Char('\u202e')}}},
	}
	return m
}

// tour goes through every screen and dialog that shows something of a message.
var tour = []string{
	"enter", "?", "esc", "/", "tab", "esc", "g", "q", "R", "t", "esc", "esc", "C", "esc", "X", "esc",
	"enter", "v", "v", "tab", "end", "pgdown", "tab", "end", "home", "q", "o", "a", "i", "tab", "tab", "tab",
}

func TestHostileMessage(t *testing.T) {
	c := &clock{begin}
	for _, size := range [][2]int{{80, 24}, {60, 15}, {160, 50}} {
		d := drive(t, Deps{Backend: onlyMessage{name: "q" + attack, m: hostileMessage(attack)}, Now: c.Now, Conn: "c" + attack, Notice: attack}, size[0], size[1])
		d.view()
		for _, k := range tour {
			d.press(k)
			d.view()
		}
	}
	d := drive(t, Deps{Backend: onlyMessage{name: "orders", m: hostileMessage(attack)}, Now: c.Now}, 80, 24)
	d.press("enter")
	d.golden("hostile-letters-80x24")
	d.press("enter", "v", "tab")
	d.golden("hostile-detail-80x24")
}

// Whatever a message holds, every screen stays within the terminal and free of controls.
func FuzzScreens(f *testing.F) {
	f.Add([]byte(attack), uint8(80), uint8(24))
	f.Add([]byte("<a><b>\x00</b></a>"), uint8(60), uint8(15))
	f.Add([]byte(`{"a":"`+"\u202e"+`"}`), uint8(200), uint8(50))
	f.Add([]byte("界界界界界界界界"), uint8(61), uint8(16))
	f.Fuzz(func(t *testing.T, text []byte, width, height uint8) {
		if len(text) > 1<<12 {
			return
		}
		c := &clock{begin}
		d := drive(t, Deps{Backend: onlyMessage{name: "q" + string(text), m: hostileMessage(string(text))}, Now: c.Now, Getenv: withColour}, int(width)+1, int(height)+1)
		for _, k := range tour {
			d.press(k)
			d.view()
			if t.Failed() {
				t.Fatalf("after %q in %v at %s", k, tour, fmt.Sprint(width, "x", height))
			}
		}
	})
}

// A paste is one text for a line that is being typed, and acts on nothing elsewhere.
func TestPaste(t *testing.T) {
	b, c := incident(t)
	d := drive(t, Deps{Backend: b, Now: c.Now}, 80, 24)
	paste := keyMsg("Ry\x1b[2J")
	paste.Paste = true
	d.press("enter")
	d.send(paste)
	if d.app.dialog != nil {
		t.Fatal("pasted text has opened a dialog")
	}
	d.has("pasted text does nothing here")
	d.press("/")
	d.send(paste)
	d.has("/ Ry [2J")
}

// Keys that arrive in one read, as on a slow line, are several keys.
func TestKeysInOneRead(t *testing.T) {
	b, c := incident(t)
	d := drive(t, Deps{Backend: b, Now: c.Now}, 80, 24)
	d.press("enter")
	d.send(keyMsg("jjj"))
	d.has("4/9")
	d.send(keyMsg("/since:2h"))
	d.has("/ since:2h")
}
