package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/kopf-go/kopf/internal/conversion"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/webhook"
)

// converter is a webhook with conversions from v1 to v2 and to v3.
type converter struct {
	http.Handler
	mu       sync.Mutex
	log      []string
	outcomes []string
}

func (c *converter) note(list *[]string, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*list = append(*list, text)
}

func newConverter(t testing.TB, convert conversion.Function) *converter {
	t.Helper()
	var set conversion.Set
	for _, pair := range [][2]string{{"v1", "v2"}, {"v2", "v1"}, {"v2", "v3"}, {"v3", "v2"}} {
		d, err := conversion.New(selector.New("kopf.dev", "kopfexamples"), pair[0], pair[1], convert)
		if err != nil {
			t.Fatal(err)
		}
		set = append(set, d)
	}
	graphs, problems := set.Resolve([]selector.Resource{resource})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	c := &converter{}
	c.Handler = webhook.New(webhook.Options{
		Resources:   findResource,
		Logger:      funcr.New(func(_, text string) { c.note(&c.log, text) }, funcr.Options{Verbosity: 1}),
		Conversions: func(name string) *conversion.Graph { return graphs[name] },
		Converted: func(definition, from, to string, err error, _ time.Duration) {
			c.note(&c.outcomes, fmt.Sprintf("%s %s>%s %t", definition, from, to, err == nil))
		},
		CheckReady: func(context.Context) error { return errors.New("it does not know its objects") }, // which needs conversions
	})
	return c
}

func conversionReview(to string, objects ...any) m {
	return m{"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": m{"uid": "r-1", "desiredAPIVersion": to, "objects": objects}}
}

func named(name string) m {
	return m{"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": m{"name": name, "namespace": "ns", "uid": "u-" + name}, "spec": m{"size": 9007199254740993, "share": 0.5}}
}

const convertPath = "/convert/kopfexamples.kopf.dev"

func (c *converter) ask(t testing.TB, sent any) *apiextensionsv1.ConversionResponse {
	t.Helper()
	answer := post(t, c, convertPath, encode(t, sent))
	var review apiextensionsv1.ConversionReview
	if err := json.Unmarshal(answer.Body.Bytes(), &review); err != nil || answer.Code != http.StatusOK || review.Response == nil ||
		review.APIVersion != "apiextensions.k8s.io/v1" || review.Kind != "ConversionReview" || review.Response.UID != "r-1" || review.Request != nil {
		t.Fatalf("status %d: %s, %v", answer.Code, answer.Body, err)
	}
	return review.Response
}

// failFor fails for objects by their names.
func failFor(ctx context.Context, c *conversion.Call) error {
	switch c.Object.GetName() {
	case "bad":
		return errors.New("it is bad")
	case "panics":
		panic("a secret")
	case "waits":
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func TestAllObjectsAreConvertedInTheirOrder(t *testing.T) {
	c := newConverter(t, failFor)
	current := named("current")
	current["apiVersion"] = "kopf.dev/v3"
	response := c.ask(t, conversionReview("kopf.dev/v3", named("b"), current, named("a")))
	var got []string
	for _, raw := range response.ConvertedObjects {
		got = append(got, string(raw.Raw))
	}
	want := ""
	for i, name := range []string{"b", "current", "a"} {
		text := fmt.Sprintf(`{"apiVersion":"kopf.dev/v3","kind":"KopfExample","metadata":{"name":%q,"namespace":"ns","uid":"u-%s"},"spec":{"share":0.5,"size":9007199254740993}}`, name, name)
		if i >= len(got) || got[i] != text {
			want += text + "\n"
		}
	}
	if want != "" || response.Result.Status != "Success" {
		t.Errorf("got %v %s, want\n%s", response.Result, strings.Join(got, "\n"), want)
	}
	if strings.Join(c.outcomes, ", ") != "kopfexamples.kopf.dev v1>v3 true, kopfexamples.kopf.dev v3>v3 true, kopfexamples.kopf.dev v1>v3 true" {
		t.Errorf("got %v", c.outcomes)
	}
}

func TestEachObjectThatFailsIsNamed(t *testing.T) {
	c := newConverter(t, failFor)
	nameless := m{"apiVersion": "kopf.dev/v9", "kind": "KopfExample"}
	response := c.ask(t, conversionReview("kopf.dev/v3", named("one"), named("bad"), named("panics"), nameless, "text", nil))
	if response.Result.Status != "Failure" || len(response.ConvertedObjects) > 0 {
		t.Errorf("got %v", response)
	}
	for _, want := range []string{
		"5 of 6 objects of kopfexamples.kopf.dev cannot be converted to v3: ns/bad (uid u-bad): from v1 to v2: it is bad; ",
		"ns/panics (uid u-panics): from v1 to v2: the function panicked; see the log of the operator; ",
		`the object number 4: no conversion leads from v9 to v3: declare kopf.OnConvert from "v9" to "v3", or to a version that leads there: v1, v2; `,
		"the object number 5: it cannot be read: ", "the object number 6: it cannot be read: ",
	} {
		if !strings.Contains(response.Result.Message, want) {
			t.Errorf("%q is not in %q", want, response.Result.Message)
		}
	}
	if strings.Contains(response.Result.Message, "secret") {
		t.Error("the text of a panic is shown to users")
	}
	log := strings.Join(c.log, "\n")
	for _, want := range []string{`"The conversion failed. `, `"name"="bad"`, "a secret", `"stack"=`} {
		if !strings.Contains(strings.ReplaceAll(log, `\"`, `"`), want) {
			t.Errorf("%s is not in the log:\n%s", want, log)
		}
	}
}

// The answer stays readable when thousands of objects fail.
func TestTheAnswerNamesTenObjects(t *testing.T) {
	var objects []any
	for range 5000 {
		objects = append(objects, named("bad"))
	}
	message := newConverter(t, failFor).ask(t, conversionReview("kopf.dev/v2", objects...)).Result.Message
	if !strings.HasPrefix(message, "5000 of 5000 objects") || !strings.HasSuffix(message, "; and 4990 more") || strings.Count(message, "ns/bad") != 10 {
		t.Errorf("got %s", message)
	}
}

// The API server repeats conversions for its cache, without a request of a user.
func TestTheSameFailureIsLoggedOnceInTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConverter(t, failFor)
		failures := func() (lines int) {
			for _, line := range c.log {
				if strings.Contains(line, `"The conversion failed. `) {
					lines++
				}
			}
			return lines
		}
		for i, step := range []struct {
			name, to string
			after    time.Duration
			want     int
		}{
			{"bad", "v2", 0, 1},
			{"bad", "v2", 0, 1},
			{"bad", "v3", 0, 1}, // the same step
			{"panics", "v2", 0, 2},
			{"bad", "v2", 10*time.Minute - 1, 2},
			{"bad", "v2", 1, 3},
			{"bad", "v2", 0, 3},
		} {
			time.Sleep(step.after)
			if c.ask(t, conversionReview("kopf.dev/"+step.to, named(step.name))); failures() != step.want {
				t.Errorf("step %d: %d failures are logged, want %d", i, failures(), step.want)
			}
		}
		// The memory and the log are bounded, whatever the objects are. One of 1,000 is known.
		var many []any
		for i := range 3000 {
			many = append(many, named("bad"))
			many[i].(m)["metadata"].(m)["uid"] = fmt.Sprint(i)
		}
		for range 2 {
			if c.ask(t, conversionReview("kopf.dev/v2", many...)); failures() != 1002 {
				t.Errorf("%d failures are logged", failures())
			}
		}
		if log := strings.Join(c.log, "\n"); strings.Count(log, "Many conversions fail.") != 1 {
			t.Error("the log does not say once that failures are left out")
		}
		time.Sleep(10 * time.Minute)
		if c.ask(t, conversionReview("kopf.dev/v2", named("bad"))); failures() != 1003 {
			t.Errorf("%d failures are logged: the former ones are not forgotten", failures())
		}
	})
}

// The API server has its answer when the time is over, whatever functions do.
func TestConversionEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		message := newConverter(t, failFor).ask(t, conversionReview("kopf.dev/v2", named("one"), named("waits"), named("two"))).Result.Message
		if time.Since(began) != webhook.MaxTimeout || !strings.Contains(message, "2 of 3 objects") || !strings.Contains(message, "ns/waits (uid u-waits): from v1 to v2: ") ||
			!strings.Contains(message, "ns/two (uid u-two): from v1 to v2: no time was left") {
			t.Errorf("after %s: %s", time.Since(began), message)
		}
	})
}

func TestInvalidConversionReviewsAreExplained(t *testing.T) {
	valid := encode(t, conversionReview("kopf.dev/v2", named("one")))
	for name, test := range map[string]struct {
		path, body string
		status     int
		says       string
	}{
		"another definition":   {"/convert/others.kopf.dev", valid, 404, `declares no conversion for "others.kopf.dev"`},
		"no body":              {convertPath, "", 400, "has no body"},
		"not JSON":             {convertPath, "uid=1", 400, "not a ConversionReview as JSON"},
		"an admission review":  {convertPath, encode(t, review(example(nil))), 400, `a ConversionReview of apiextensions.k8s.io/v1 is expected, not "AdmissionReview"`},
		"an old version":       {convertPath, strings.Replace(valid, "apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1", 1), 400, `of "apiextensions.k8s.io/v1beta1"`},
		"no request":           {convertPath, `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}`, 400, "has no request"},
		"no uid":               {convertPath, strings.Replace(valid, "r-1", "", 1), 400, "has no uid"},
		"another group":        {convertPath, encode(t, conversionReview("example.com/v2")), 400, `cannot be converted to the version "example.com/v2"`},
		"a version of nothing": {convertPath, encode(t, conversionReview("v2")), 400, `cannot be converted to the version "v2"`},
	} {
		t.Run(name, func(t *testing.T) {
			c := newConverter(t, failFor)
			answer := post(t, c, test.path, test.body)
			if answer.Code != test.status || !strings.Contains(answer.Body.String(), test.says) {
				t.Errorf("status %d: %s", answer.Code, answer.Body)
			}
			if !strings.Contains(strings.Join(c.log, "\n"), "A conversion review could not be answered.") {
				t.Errorf("the log has %v", c.log)
			}
		})
	}
}

// A handler can have an id that looks like the path of a conversion.
func TestHandlersAreCalledAtTheirPaths(t *testing.T) {
	h := &handlers{t: t}
	h.validate("convert/sizes", admit)
	if got := ask(t, h.serve(), "/convert/sizes", review(example(nil))); !got.Allowed {
		t.Errorf("got %v", got)
	}
}
