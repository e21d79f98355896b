// Command bench measures what handling objects costs: one operator of this
// project beside a hand-written controller-runtime reconciler that keeps the same
// books, one after another, each on a control plane of its own.
//
//	go run ./test/bench            # 5,000 objects of 1 KB: some minutes on two cores
//	go run ./test/bench -n 500     # a quick look
//	go run ./test/bench -background # daemons and timers alone
//	go run ./test/bench -admission  # admission webhooks alone: some seconds
//	go run ./test/bench -json      # the figures for machines
//	go run ./test/bench -profile d # pprof files of every phase, in the directory d
//
// Then what daemons and timers cost: the same operator with neither, with one
// timer for every object, with one daemon that waits, and with both. Their figures
// are what they have above the first one, at rest: the memory of each, and the CPU
// time of so many empty calls a second.
//
// At last what an admission handler costs that admits everything: the time of a call
// over TLS, beside that of the same webhook with controller-runtime alone. These two
// are in the program itself, and are called by turns.
//
// # How it measures
//
// The operator is a child process: the same program, started again with a role in
// its environment. So its CPU time and memory are its own, and include neither
// the API server nor the load. The parent makes the load, watches the objects'
// metadata to see when they are handled, and asks the child for samples through
// a pipe: CPU time by getrusage, resident memory by /proc, requests by a counting
// transport.
//
// Both operators get the same: an unlimited connection, the same number of
// workers, a structured log into the null device, and a first hundred objects to
// warm up with, which are gone before anything is measured.
//
// # Invariant
//
// Nothing here fails because of a time: on a busy machine the figures are worse,
// and the run is as good as ever. Counts are another matter, see the test.
package main
