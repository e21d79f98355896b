package cli

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/kopf-go/kopf/pkg/cli/inspect"
	"github.com/kopf-go/kopf/pkg/model/request"
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
	duration, forever := defaultSuspension, false
	command := newQuestion(load, "suspend KIND/NAME [flags]", "Call no handlers for an object for some time",
		"Call no handlers for an object, and hold its deletion, until a time. Changes are handled afterwards.",
		"  suspend kopfexample/kopf-example-1 --for 2h",
		func(q *question, command *cobra.Command, arguments []string) error {
			r := inspect.Request{Verb: request.Suspend}
			switch {
			case duration <= 0:
				return &usageError{errors.New("--for must be positive, such as 2h")}
			case !forever:
				r.Until = time.Now().Add(duration).Truncate(time.Second)
			}
			return q.send(command, arguments, r, false)
		})
	command.Flags().DurationVar(&duration, "for", duration, "how long: a `duration` such as 90m")
	command.Flags().BoolVar(&forever, request.Forever, false, "until unsuspend")
	return command
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
