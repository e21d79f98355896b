package virtual

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// Handlers that follow each other handle a change as a whole, also if their object changes meanwhile. A
// call has the sizes before and after; "!" is a failed attempt. What is in brackets happens only with sub-handlers, whose
// parent is retried with all of them.
func TestHandlersThatFollowEachOtherHandleAChangeAsAWhole(t *testing.T) {
	whole := func(change string) string {
		return fmt.Sprintf("down %[1]s upgrade %[1]s up %[1]s", change)
	}
	tests := map[string]struct {
		during string // the steps during whose attempts the object changes; the last one during all others
		to     []int
		fails  bool // the last attempt of that step fails for good
		want   string
		beside string // what is wanted instead of sub-handlers beside a slow handler, if it differs
	}{
		"the object changes before a retry":          {"upgrade", []int{3}, false, "down 1-2 !upgrade 1-2 upgrade 1-3 up 1-3 " + whole("2-3"), ""},
		"it changes twice":                           {"upgrade", []int{3, 4}, false, "down 1-2 !upgrade 1-2 !upgrade 1-3 upgrade 1-4 up 1-4 " + whole("2-4"), ""},
		"the change is taken back":                   {"upgrade", []int{1}, false, "down 1-2 !upgrade 1-2 upgrade 1-1 [up 1-1 ]" + whole("2-1"), ""},
		"the object changes, and changes back":       {"upgrade", []int{3, 2}, false, "down 1-2 !upgrade 1-2 !upgrade 1-3 upgrade 1-2 up 1-2", ""},
		"it changes after the last step has failed":  {"up", []int{3}, false, "down 1-2 upgrade 1-2 !up 1-2 up 1-3 " + whole("2-3"), ""},
		"the step fails for good after the change":   {"upgrade", []int{3}, true, "down 1-2 !upgrade 1-2 upgrade 1-3 restore 1-3 " + whole("2-3"), ""},
		"the change is taken back, and fails then":   {"upgrade", []int{1}, true, "down 1-2 !upgrade 1-2 upgrade 1-1 [restore 1-1 ]" + whole("2-1"), ""},
		"the next change is taken back":              {"upgrade down", []int{3, 2}, false, "down 1-2 !upgrade 1-2 upgrade 1-3 up 1-3 !down 2-3 down 2-2 upgrade 2-2 up 2-2", "down 1-2 !upgrade 1-2 upgrade 1-3 up 1-3 !down 2-2 down 2-2 upgrade 2-2 up 2-2"},
		"the next change is taken back, and fails":   {"upgrade down", []int{3, 2}, true, "down 1-2 !upgrade 1-2 upgrade 1-3 up 1-3 !down 2-3 down 2-2 restore 2-2", "down 1-2 !upgrade 1-2 upgrade 1-3 up 1-3 !down 2-2 down 2-2 restore 2-2"},
		"it changes back after the last step's call": {"up", []int{3, 2}, false, "down 1-2 upgrade 1-2 !up 1-2 !up 1-3 up 1-2", ""},
	}
	for name, test := range tests {
		for _, kind := range []string{"handlers", "sub-handlers", "sub-handlers beside a slow handler"} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				var calls []string
				attempts := 0
				isBroken := func(id string) bool {
					steps := strings.Fields(test.during)
					return id == steps[min(attempts, len(steps)-1)]
				}
				step := func(id string) func(context.Context, *kopf.Change) error {
					return func(_ context.Context, c *kopf.Change) error {
						before, _ := c.Old().View().Int64("spec", "size")
						after, _ := c.New().View().Int64("spec", "size")
						called := fmt.Sprintf("%s %d-%d", id, before, after)
						if isBroken(id) && attempts < len(test.to) {
							attempts++
							calls = append(calls, "!"+called)
							return kopf.Temporary(errors.New("not yet"), time.Minute)
						}
						calls = append(calls, called)
						if isBroken(id) && attempts == len(test.to) && test.fails {
							attempts++
							return kopf.Permanent(errors.New("broken"))
						}
						return nil
					}
				}
				withOperator(t, func(r *kopf.Registry) {
					declare := func(add func(id string, fn func(context.Context, *kopf.Change) error, options ...kopf.ChangeOption)) {
						add("restore", step("restore"), kopf.AfterFailure("down", "upgrade"))
						add("up", step("up"), kopf.After("upgrade"))
						add("upgrade", step("upgrade"), kopf.After("down"))
						add("down", step("down"))
					}
					if kind == "handlers" {
						declare(func(id string, fn func(context.Context, *kopf.Change) error, options ...kopf.ChangeOption) {
							r.OnUpdate(examples, fn, append(options, kopf.ID(id))...)
						})
						return
					}
					r.OnUpdate(examples, func(_ context.Context, c *kopf.Change) error {
						declare(func(id string, fn func(context.Context, *kopf.Change) error, options ...kopf.ChangeOption) {
							c.Subhandler(id, fn, options...)
						})
						return nil
					}, kopf.ID("story"))
					if kind != "sub-handlers" {
						r.OnUpdate(examples, func(_ context.Context, c *kopf.Change) error {
							if c.Retry() < 10 {
								return kopf.Temporary(errors.New("slow"), time.Minute)
							}
							return nil
						}, kopf.ID("slow"))
					}
				}, func(t *testing.T, h *kopftest.Harness) {
					one := newExample()
					one.Object["spec"] = map[string]any{"size": int64(1)}
					h.Create(one)
					h.Settle()
					h.Patch(one, `{"spec":{"size":2}}`)
					h.Advance(30 * time.Second)
					for _, size := range test.to { // in the middle between two attempts
						h.Patch(one, fmt.Sprintf(`{"spec":{"size":%d}}`, size))
						h.Crash()
						h.Advance(time.Minute)
					}
					h.Advance(24 * time.Hour)
					want := strings.NewReplacer("[", "", "]", "").Replace(test.want)
					switch {
					case kind == "sub-handlers beside a slow handler" && test.beside != "":
						want = test.beside
					case kind == "handlers":
						want = regexp.MustCompile(`\[.*\]`).ReplaceAllString(test.want, "")
					}
					if got := strings.Join(calls, " "); got != want {
						t.Errorf("got  %s\nwant %s", got, want)
					}
				})
			})
		}
	}
}
