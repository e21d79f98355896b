//go:build unix

package binaries

import (
	"os"
	"syscall"
)

// tryLock takes the lock on a file. The lock is released when the file is closed, at
// the latest when the process exits.
func tryLock(file *os.File) bool {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
