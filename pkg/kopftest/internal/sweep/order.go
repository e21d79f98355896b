package sweep

import "sync"

// Each calls run for the numbers below count, for some of them at the same time, and next after
// each run. Everything after finish, which run calls when its work is done, happens in the order
// of the numbers: finish waits for the return of next for all smaller numbers. When next returns
// false, no other run begins.
func Each(count, workers int, run func(number int, finish func()), next func(number int) bool) {
	var all sync.WaitGroup
	defer all.Wait()
	free := make(chan struct{}, workers)
	stopped := make(chan struct{})
	stop := sync.OnceFunc(func() { close(stopped) })
	before := make(chan struct{})
	close(before)
	for number := range count {
		free <- struct{}{}
		select {
		case <-stopped:
			return
		default:
		}
		previous := before
		done := make(chan struct{})
		before = done
		all.Go(func() {
			defer close(done)
			finish := sync.OnceFunc(func() {
				<-free
				<-previous
			})
			run(number, finish)
			finish()
			if !next(number) {
				stop()
			}
		})
	}
}
