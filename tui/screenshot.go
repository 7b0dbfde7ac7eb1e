package tui

import (
	"context"
	"reflect"

	tea "github.com/charmbracelet/bubbletea"
)

// Screenshot returns the screen of that size after those keys, as text without colour: for
// documents that show the program as it is. Keys are named as bubbletea names them:
// "enter", "esc", "ctrl+u", " " or a single character. It uses no terminal and waits for
// whatever a key begins, a job to its end too.
func Screenshot(ctx context.Context, d Deps, width, height int, keys ...string) string {
	getenv := d.Getenv
	d.Getenv = func(name string) string {
		if name == "NO_COLOR" {
			return "1"
		}
		if getenv == nil {
			return ""
		}
		return getenv(name)
	}
	p := newPlayer(ctx, d, width, height)
	defer func() { _, _ = p.app.close() }()
	for _, k := range keys {
		p.key(k)
	}
	return p.app.View()
}

// player stands in for bubbletea: it carries out every Cmd to its end before it goes on,
// one after the other.
type player struct {
	app  *app
	quit bool
}

func newPlayer(ctx context.Context, d Deps, width, height int) *player {
	p := &player{app: newApp(ctx, d)}
	p.send(tea.WindowSizeMsg{Width: width, Height: height})
	p.run(p.app.start())
	return p
}

func (p *player) send(msg tea.Msg) {
	_, cmd := p.app.Update(msg)
	p.run(cmd)
}

// run carries out a Cmd and whatever follows from it.
func (p *player) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case nil:
	case tea.QuitMsg:
		p.quit = true
	default:
		// A batch or a sequence (whose type is not exported) is a slice of Cmds.
		if v := reflect.ValueOf(msg); v.Kind() == reflect.Slice && v.Type().Elem() == reflect.TypeFor[tea.Cmd]() {
			for i := range v.Len() {
				p.run(v.Index(i).Interface().(tea.Cmd))
			}
			return
		}
		p.send(msg)
	}
}

// key sends the key with that name.
func (p *player) key(name string) { p.send(keyMsg(name)) }

// keyMsg returns the key with that name; what is no name is typed.
func keyMsg(name string) tea.KeyMsg {
	for t := tea.KeyType(-128); t < 128; t++ {
		if k := (tea.KeyMsg{Type: t}); t != tea.KeyRunes && k.String() == name {
			if t == tea.KeySpace {
				k.Runes = []rune{' '}
			}
			return k
		}
	}
	return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(name)}
}
