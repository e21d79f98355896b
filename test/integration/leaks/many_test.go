//go:build !race

package leaks

// objects is the number of objects at a time: 10,000 in total.
const objects = 2000
