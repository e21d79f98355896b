package pty

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Open opens a terminal with a width. Programs write to the screen; what they have written is read
// from the other end. Close both.
func Open(width uint16) (end, screen *os.File, err error) {
	end, err = os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	of := int(end.Fd())
	number, err := unix.IoctlGetUint32(of, unix.TIOCGPTN)
	err = errors.Join(err,
		unix.IoctlSetPointerInt(of, unix.TIOCSPTLCK, 0),
		unix.IoctlSetWinsize(of, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: width}),
	)
	if err == nil {
		screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("the terminal cannot be set up: %w", err), end.Close())
	}
	return end, screen, nil
}
