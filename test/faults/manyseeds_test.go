//go:build !race

package faults

const defaultSeeds = 30
