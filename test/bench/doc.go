// Command bench measures the cost of handling objects. It compares an operator of this
// project with a hand-written controller-runtime reconciler that does the same
// bookkeeping, one after the other, each on a separate control plane.
//
//	go run ./test/bench            # 5,000 objects of 1 KB: several minutes on two cores
//	go run ./test/bench -n 500     # a quick run
//	go run ./test/bench -background # only daemons and timers
//	go run ./test/bench -waiting -n 2000 # only handlers that wait
//	go run ./test/bench -children -n 500 # only operators that keep children
//	go run ./test/bench -children -metacontroller PATH # and Metacontroller
//	go run ./test/bench -neighbors -n 1000 # only what another client of the API server notices
//	go run ./test/bench -shards 1,2,3 # only replicas that share the objects
//	go run ./test/bench -resident 100000 -n 2000 -memory # only an operator with many objects that do not change
//	go run ./test/bench -admission  # only admission webhooks: a few seconds
//	go run ./test/bench -json      # print JSON
//	go run ./test/bench -profile d # write pprof files of every phase to the directory d
//
// Then it measures the cost of daemons and timers, with the same operator with neither,
// with one timer for every object, with one waiting daemon for every object, and with
// both. Their figures are the differences to the first operator at rest: the memory of
// each, and the CPU time of empty calls.
//
// With -waiting, it measures handlers that wait: the time to handle 400 objects whose
// handlers wait for 10 seconds, also with a controller-runtime reconciler; the memory of
// waiting handlers; and the latency of another resource while they wait, and while they
// finish.
//
// With -children, it measures an operator that keeps five children of every object with
// Ensure, and a controller-runtime reconciler with Owns and server-side apply: requests and
// CPU time when objects are created and changed, and when a child of each is changed; the
// time from the change of a child until the function is called, and until the child is
// repaired; requests at rest and after a restart; and the memory of children, compared with
// an operator that only has the same objects in its cache.
//
// With -metacontroller, it then measures Metacontroller (https://metacontroller.github.io) in the
// same way. The flag is the path of a build of Metacontroller. A hook on loopback returns the
// same children, and the program writes them. Its CPU time and memory include neither the hook
// nor the proxy that counts its requests. The time from the change of a child is measured after
// a restart without the proxy. At a start, the program is ready when it calls the hook for the
// first time. There are heap profiles of it, but no CPU profiles.
//
// With -neighbors, it measures operators with their default limits, and without any, while another
// client changes objects of another resource at a fixed rate: the time of a burst of creations, the
// requests that the API server refuses, and the latency of the other client. The API server has few
// seats for the operator with -seats, and refuses further requests with -reject.
//
// With -shards, it measures replicas that share the objects of one operator, with an API server that sends
// each of them only its own objects, and with one that sends all: CPU time and memory of each replica, compared with one
// that has all objects; and what happens when another replica joins, and when one is killed: the time until all objects
// that move are handled by their new replicas, and the latency of changes meanwhile.
//
// With -resident, it measures an operator with many objects that are handled already and do not change: a restart with
// them, and the cost of other objects. With -memory, the API server is that of the test kit.
//
// Finally it measures an admission handler that admits everything: the time of a call
// over TLS, compared with the same webhook of controller-runtime alone. Both webhooks
// run in this process and are called in turns.
//
// # How it measures
//
// The operator is a child process: the same program, started with a role in its
// environment. Therefore its CPU time and memory include neither the API server nor the
// load. The parent generates the load, watches the metadata of the objects to see when
// they are handled, and asks the child for samples through a pipe: CPU time from the
// clock of the process, resident memory from /proc, requests from a counting transport.
//
// Both operators get the same environment: a connection without a limit of requests per second, the same
// number of workers, a structured log to the null device, and a hundred objects to warm
// up, which are deleted before anything is measured.
//
// # Invariant
//
// Times never make a run fail: on a busy machine, only the figures are worse. The tests
// check counts.
package main
