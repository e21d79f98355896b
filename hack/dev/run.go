package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kopf-go/kopf/internal/guard"
)

// settleTime is how long to wait for the first output of the operator before the sample
// is created. It only makes the output easier to follow.
const settleTime = 5 * time.Second

// registerTime is how long to wait for the webhooks of the operator. Without them, the sample
// would be created unchanged and unchecked, which looks as if the handlers did not work.
const registerTime = 30 * time.Second

// run builds the operator, runs it, and cleans up. It returns when the context is
// canceled, when the operator exits, or with -once when the sample is handled.
func run(ctx context.Context, opts options, out *console) (err error) {
	example, err := findExample(opts.example)
	if err != nil {
		return err
	}
	watch, err := guard.New()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, watch.Release()) }()

	binary, err := example.build(ctx, watch, out)
	if err != nil {
		return ignoreCanceled(ctx, err)
	}
	target, err := findCluster(ctx, opts, example.name, out)
	if err != nil {
		return ignoreCanceled(ctx, err)
	}
	defer func() { err = errors.Join(err, target.close(out)) }()

	return ignoreCanceled(ctx, show(ctx, opts, example, binary, target, out))
}

// show installs the definitions, starts the operator, creates the sample, and follows
// it.
func show(ctx context.Context, opts options, example example, binary string, target *target, out *console) error {
	if err := example.install(target, out); err != nil {
		return err
	}
	registers, err := example.registersWebhooks(ctx)
	if err != nil {
		return err
	}
	operator, err := startOperator(binary, opts.arguments, target, out.prefixed(example.name))
	if err != nil {
		return err
	}
	defer operator.stop(out)
	if err := operator.settle(ctx, settleTime); err != nil {
		return err
	}
	if registers {
		if err := operator.waitRegistered(ctx, registerTime, out); err != nil {
			return err
		}
	}
	sample, err := example.sample(target, out)
	if err != nil {
		return err
	}
	if sample == nil && opts.once {
		return errors.New("-once needs a sample object, but the example has none")
	}
	handled, stop, err := follow(ctx, target, sample, out)
	if err != nil {
		return err
	}
	defer stop()
	if target.own != nil && sample != nil {
		out.say("To see the object: kubectl get %s %s -o yaml", strings.ToLower(sample.GetKind()), sample.GetName())
	}
	out.say("Press Ctrl-C to stop.")
	if sample != nil {
		if err := target.apply(ctx, sample); err != nil {
			return err
		}
	}
	return wait(ctx, opts, operator, handled)
}

// wait returns nil when the user presses Ctrl-C, or with -once when the object is
// handled.
func wait(ctx context.Context, opts options, operator *operator, handled <-chan struct{}) error {
	var late <-chan time.Time
	if opts.once {
		late = time.After(opts.timeout)
	} else {
		handled = nil
	}
	select {
	case <-ctx.Done():
		return nil
	case <-handled:
		return nil
	case <-operator.done:
		return operator.ended()
	case <-late:
		return fmt.Errorf("the sample object was not handled within %s", opts.timeout)
	}
}

// ignoreCanceled returns nil for an error that Ctrl-C caused.
func ignoreCanceled(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
