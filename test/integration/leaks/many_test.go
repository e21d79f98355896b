//go:build !race

package leaks

// objects are there at a time: 10,000 in all.
const objects = 2000
