package conformance

// exceptions are the vectors that this project deliberately does not follow: "subject/name" and
// the reason, which must follow from the design of the project.
var exceptions = map[string]string{}

// excepted reports whether the vector is skipped, and logs the reason.
func excepted(t interface{ Logf(string, ...any) }, subject, name string) bool {
	reason, ok := exceptions[subject+"/"+name]
	if ok {
		t.Logf("excepted %s: %s", name, reason)
	}
	return ok
}
