// Package isolate calls code that may end its goroutine with runtime.Goexit, as t.FailNow
// does, without ending the caller. Nothing can stop a goroutine from ending, so the code
// runs in another one.
package isolate

// Run calls the function, and waits until it has returned. It returns false if the function
// has ended its goroutine instead. The function must recover its panics.
func Run(f func()) (returned bool) {
	done := make(chan bool, 1)
	go func() {
		completed := false
		defer func() { done <- completed }()
		f()
		completed = true
	}()
	return <-done
}
