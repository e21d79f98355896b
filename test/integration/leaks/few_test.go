//go:build race

package leaks

// objects are fewer under the race detector, which makes everything slower.
const objects = 300
