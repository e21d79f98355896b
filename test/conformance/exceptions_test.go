package conformance

// exceptions are the vectors that this project deliberately does not follow,
// "subject/name" to the reason. The design of the project is the only ground
// for an entry.
var exceptions = map[string]string{}

// excepted reports whether the vector is left out, and logs why.
func excepted(t interface{ Logf(string, ...any) }, subject, name string) bool {
	reason, ok := exceptions[subject+"/"+name]
	if ok {
		t.Logf("excepted %s: %s", name, reason)
	}
	return ok
}
