package cli

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kopf-go/kopf/internal/request"
	"github.com/kopf-go/kopf/pkg/inspect"
)

// requestHelp is the help of the commands that send requests.
var requestHelp = map[request.Verb]struct{ short, long string }{
	request.Retry: {"Call a handler now that waits for its next attempt", "The attempt counts as any other."},
	request.Rerun: {"Call a handler again that has ended", "For an object to which nothing has happened, it is called with the reason resume."},
	request.Skip:  {"Give a handler up", "The handler counts as succeeded until the next change. Nothing cleans up for a deletion handler\nthat is skipped: that needs --abandon."},
}

func newRequestCommand(load Load, verb request.Verb) *cobra.Command {
	r := inspect.Request{Verb: verb}
	help := requestHelp[verb]
	command := newQuestion(load, string(verb)+" KIND/NAME HANDLER [flags]", help.short,
		help.long+"\n\nThe request is an annotation, which a running operator honors once.",
		"  "+string(verb)+" kopfexample/kopf-example-1 createFn",
		func(q *question, command *cobra.Command, arguments []string) error {
			if err := checkArguments(arguments, 3); err != nil {
				return err
			}
			return q.send(command, arguments, r, true)
		})
	if verb == request.Skip {
		command.Flags().BoolVar(&r.Abandon, request.Abandon, false, "also skip a deletion handler, for which nothing cleans up afterwards")
	}
	return command
}

// send sends a request about the object and the handler in the arguments.
func (q *question) send(command *cobra.Command, arguments []string, r inspect.Request, needsHandler bool) error {
	ctx := command.Context()
	_, handlers, err := inspect.ParseTarget(arguments)
	switch {
	case err != nil:
		return &usageError{err}
	case needsHandler && len(handlers) == 0:
		return usageErrorf("no handler is given: %s shows the ids", q.called.Of("explain", arguments[0]))
	case len(handlers) > 1 || !needsHandler && len(handlers) > 0:
		return usageErrorf("unexpected argument %q", arguments[len(arguments)-1])
	case needsHandler:
		r.Handler = handlers[0]
	}
	cluster, config, err := q.connect(ctx)
	if err != nil {
		return err
	}
	target, err := q.target(arguments)
	if err != nil {
		return err
	}
	text, err := cluster.Send(ctx, config, target, r)
	if err != nil {
		return err
	}
	return q.write(command.OutOrStdout(), inspect.Sent{Message: text})
}

func newSuspendCommand(load Load) *cobra.Command {
	end := suspensionEnd{}
	command := newQuestion(load, "suspend KIND/NAME [flags]", "Call no handlers for an object for some time",
		"Call no handlers for an object, and hold its deletion, until a time. Changes are handled afterwards.",
		"  suspend kopfexample/kopf-example-1 --for 2h\n  suspend kopfexample/kopf-example-1 --until 2026-01-31T13:00:00+01:00",
		func(q *question, command *cobra.Command, arguments []string) error {
			until, err := end.parse(command.Flags(), time.Now())
			if err != nil {
				return err
			}
			return q.send(command, arguments, inspect.Request{Verb: request.Suspend, Until: until}, false)
		})
	end.define(command.Flags())
	return command
}

// suspensionEnd holds the flags that say when a suspension ends.
type suspensionEnd struct {
	after time.Duration
	at    string
	never bool
}

func (e *suspensionEnd) define(set *pflag.FlagSet) {
	set.DurationVar(&e.after, "for", defaultSuspension, "how long: a `duration` such as 90m")
	set.StringVar(&e.at, "until", "", "until when: a `time` with a time zone, such as 2026-01-31T12:00:00Z")
	set.BoolVar(&e.never, request.Forever, false, "until unsuspend")
}

// parse returns when the suspension ends; the zero time if it does not end by itself.
func (e *suspensionEnd) parse(set *pflag.FlagSet, now time.Time) (time.Time, error) {
	given := 0
	for _, name := range []string{"for", "until", request.Forever} {
		if set.Changed(name) {
			given++
		}
	}
	switch {
	case given > 1:
		return time.Time{}, usageErrorf("--for, --until, and --forever say when the suspension ends: choose one")
	case e.never:
		return time.Time{}, nil
	case e.after <= 0:
		return time.Time{}, usageErrorf("--for must be positive, such as 2h")
	case e.at == "":
		return now.Add(e.after).Truncate(time.Second), nil
	}
	until, err := time.Parse(time.RFC3339, e.at)
	switch {
	case err != nil:
		return time.Time{}, usageErrorf("--until is %q: use a time with a time zone, such as %s", e.at, now.Add(time.Hour).UTC().Format(time.RFC3339))
	case !until.After(now):
		return time.Time{}, usageErrorf("--until is %s, which is over", e.at)
	}
	return until, nil
}

// defaultSuspension ends a suspension that a person forgets.
const defaultSuspension = 24 * time.Hour

func newUnsuspendCommand(load Load) *cobra.Command {
	return newQuestion(load, "unsuspend KIND/NAME [flags]", "Call the handlers of a suspended object again",
		"End the suspension of an object.", "  unsuspend kopfexample/kopf-example-1",
		func(q *question, command *cobra.Command, arguments []string) error {
			return q.send(command, arguments, inspect.Request{Verb: request.Suspend, Remove: true}, false)
		})
}
