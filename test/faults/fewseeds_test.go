//go:build race

package faults

// defaultSeeds is smaller with the race detector, which makes a storm several times slower.
const defaultSeeds = 12
