package operators

import (
	"regexp"
	"runtime"
	"strings"
)

// pooled matches the goroutines of idle connections.
var pooled = regexp.MustCompile(`net/http\.\(\*(persistConn|http2ClientConn)\)|http2\.\(\*clientConnReadLoop\)`)

// Goroutines returns the stacks of all goroutines by their numbers, except for those of
// connections, which are pooled for the next client of the process.
func Goroutines() map[string]string {
	buffer := make([]byte, 1<<26)
	buffer = buffer[:runtime.Stack(buffer, true)]
	stacks := map[string]string{}
	for _, stack := range strings.Split(string(buffer), "\n\n") {
		number, _, _ := strings.Cut(stack, " [")
		if !pooled.MatchString(stack) {
			stacks[number] = stack
		}
	}
	return stacks
}
