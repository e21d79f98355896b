//go:build race

package leaks

// objects is smaller with the race detector, which slows everything down.
const objects = 300
