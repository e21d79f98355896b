// Package process runs programs for kopf serve.
//
// A program runs without a shell, in its own process group, with the variables that it was given and no others.
// Its output, its lines, and its time are limited. The end of a program is the end of its group: what it has
// started in the background does not outlive it.
//
// No process outlives the operator, even if the operator is killed by SIGKILL. On Linux, the kernel kills the
// program with its parent (Pdeathsig). As that does not reach what the program has started, a watchdog, a
// shell that blocks on a pipe which only this process holds open, kills the groups as soon as the pipe closes.
// Where there is no /bin/sh, only the kernel does.
//
// This package carries no compatibility promise.
package process
