// Package pty opens pseudo-terminals, for tests of what programs write to a terminal.
package pty
