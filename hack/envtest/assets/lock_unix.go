//go:build unix

package assets

import (
	"os"
	"syscall"
)

// tryLock takes the lock on a file that is released when the file is closed, by
// the death of the process at the latest.
func tryLock(file *os.File) bool {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
