// Package cmd answers: what does a word on the command line do, and what does a script get
// back? It is the only package that knows all the others.
//
//	dlq, dlq tui       the terminal UI                         tui.go
//	dlq demo           a broker in memory holding an incident  demo.go, demo_incident.go
//	dlq list           entities and their counts               list.go
//	dlq peek           dead letters that match                 peek.go
//	dlq show           one message, whole                      show.go
//	dlq groups         failure signatures                      groups.go
//	dlq resubmit       select, edit, check, move               resubmit.go
//	dlq edit           $EDITOR, the diff, then resubmit        edit.go
//	dlq complete       remove a selection                      complete.go
//	dlq purge          remove everything, exported first       purge.go
//	dlq export         out to a file                           export.go
//	dlq import         back in, exact in bytes and types       import.go
//	dlq send           put a message                           send.go
//	dlq receive        take messages and settle them           receive.go
//	dlq jobs           what ran, is running or was cut off     jobs.go
//	dlq entity         make, describe, change and delete       entity.go, entity_show.go
//	dlq serve          the emulator                            serve.go, serve_run.go, serve_sqs.go, serve_say.go
//	dlq completion, man, version                               completion.go man.go version.go
//
// # The process boundary
//
// Nothing here touches os.Stdout, the environment or the wall clock by itself: [app] holds
// the streams, whether they are terminals, the environment, the clock and the connection,
// which is opened when a command first asks for it. Data goes to standard output, all else
// to standard error, and every text that came from a message or a server passes through
// textview before either sees it.
//
// # Exit codes
//
// They are an interface for scripts, listed in each command's help and decided in one
// place, exit.go: 0 done, 1 failed, 2 wrong usage, 3 partly done, 4 refused before anything
// was sent, 5 nothing matched, 130 interrupted.
//
// # How to add a command
//
// Make a file of its name with an options struct, its flags, a constructor that returns a
// [cobra.Command] made by app.command, and a run function that takes a context, the app and
// the options. Add the constructor to the list in run.go, say the side effects and the exit
// codes in its [about], and write its session under testdata/script: the test that compares
// the two lists fails until all three are there.
package cmd
