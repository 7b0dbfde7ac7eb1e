package cmd

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dlq/backends"
	"dlq/resubmit"
)

// place says which messages of an entity a command works on.
type place struct {
	active   bool // the entity's own messages instead of its dead letters
	transfer bool // the transfer dead-letter queue
}

func (p *place) addFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&p.active, "active", false, "the entity's own messages, not its dead letters")
	fs.BoolVar(&p.transfer, "transfer", false, "the transfer dead-letter queue")
}

// id reads an entity argument of a command that works on dead letters.
func (p place) id(arg string) (backends.EntityID, error) {
	id, err := entity(arg)
	if err != nil {
		return id, err
	}
	switch {
	case p.active && p.transfer:
		return id, usagef("--active and --transfer exclude each other")
	case p.active && id.Sub != backends.Main:
		return id, usagef("--active means the entity's own messages, but %q names its dead letters", arg)
	case p.transfer:
		return backends.EntityID{Name: id.Name, Sub: backends.TransferDeadLetterQueue}, nil
	case p.active, id.Sub != backends.Main:
		return id, nil
	}
	return id.DeadLetters(), nil
}

// entity reads an entity argument as it stands.
func entity(arg string) (backends.EntityID, error) {
	id, err := backends.ParseEntityID(arg)
	if err != nil {
		return id, usagef("%w", err)
	}
	return id, nil
}

// recipient reads an entity that messages are to be sent to. what names the argument.
func recipient(what, arg string) (backends.EntityID, error) {
	id, err := entity(arg)
	switch {
	case err != nil:
		return id, err
	case id.Sub != backends.Main:
		return id, usagef("%s %q: nothing can be sent to a dead-letter queue", what, arg)
	case strings.Contains(id.Name, "/Subscriptions/"):
		return id, fail(exitUsage, "send to its topic", "%s %q: nothing can be sent to a subscription", what, arg)
	}
	return id, nil
}

// selectionFlags are the flags that say which messages are meant: the one language of all
// commands and of the UI.
type selectionFlags struct {
	resubmit.Selection
	session string
}

func (s *selectionFlags) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&s.Where, "where", "", "keep what makes `EXPR` true (dlq help selection)")
	fs.StringVar(&s.Text, "text", "", "keep what holds all these `WORDS` in body, reason, description, ID or subject")
	fs.StringVar(&s.Reason, "reason", "", "keep this dead-letter reason; % stands for any `TEXT`")
	fs.StringVar(&s.JQ, "jq", "", "keep messages whose JSON body makes the jq `EXPR` true")
	fs.StringVar(&s.Group, "group", "", "keep one failure signature, by its `ID` in dlq groups")
	fs.StringArrayVar(&s.IDs, "id", nil, "keep the message with this `ID` (repeatable)")
	fs.Int64SliceVar(&s.Seqs, "seq", nil, "keep the message with this sequence `NUMBER` (repeatable)")
	fs.Lookup("seq").DefValue = "" // pflag would show "[]"
	fs.StringVar(&s.Since, "since", "", "keep what was enqueued at this `TIME` or later, or within an age such as 2h")
	fs.StringVar(&s.Until, "until", "", "keep what was enqueued before this `TIME`, or is older than an age")
	fs.StringVar(&s.session, "session", "", "keep one session, by its `ID`")
	fs.IntVar(&s.Limit, "limit", 0, "stop after `N` messages")
	fs.BoolVar(&s.All, "all", false, "all messages")
}

// selection returns what the flags say. The empty session is a session too, so its flag is
// looked at, not its value.
func (s *selectionFlags) selection(fs *pflag.FlagSet) (resubmit.Selection, error) {
	sel := s.Selection
	if fs.Changed("session") {
		sel.Session = &s.session
	}
	if sel.Limit < 0 {
		return sel, usagef("--limit %d: want a number of messages", sel.Limit)
	}
	return sel, nil
}

// compile returns the selection ready to match, its relative times frozen now, and says what
// in it is hardly meant.
func (a *app) compile(s resubmit.Selection) (*resubmit.Query, error) {
	q, err := s.Compile(a.now())
	if err != nil {
		return nil, fail(exitUsage, "dlq help selection describes the language", "%w", err)
	}
	for _, w := range q.Warnings() {
		a.say("warning: %s", w)
	}
	return q, nil
}

// narrowed reports an error for a command that changes messages without saying which ones.
func narrowed(s resubmit.Selection, verb string) error {
	if !s.Empty() {
		return nil
	}
	return fail(exitUsage, "--all means all; dlq help selection shows how to select", "nothing is selected, so nothing was %s", verb)
}

// completeEntity offers the names of entities to the shell.
func (a *app) completeEntity(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(c.Context(), completionBound)
	defer cancel()
	b, err := a.existing(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for e, err := range b.Entities(ctx, backends.EntityQuery{Prefix: prefix, NoCounts: true}) {
		if err != nil {
			break
		}
		names = append(names, e.ID.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
