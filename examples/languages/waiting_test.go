package languages

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopftest"
)

// BenchmarkWaitingCalls measures an operator and its worker in Python while 200 calls wait, and before:
//
//	go test -run '^$' -bench WaitingCalls -benchtime 1x -count 3 ./examples/languages
//
// It needs Linux.
func BenchmarkWaitingCalls(b *testing.B) {
	if noPython(b) {
		return
	}
	all := newBench(b)
	for name, handler := range map[string]string{
		"coroutines": "async def wait(**_):\n    tell()\n    await asyncio.sleep(1000)\n",
		"functions":  "def wait(**_):\n    tell()\n    time.sleep(1000)\n",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				all.measureWaitingCalls(b, fmt.Sprint("languages-waiting-", time.Now().UnixNano()), handler)
			}
		})
	}
}

const waitingCalls = 200

func (b *bench) measureWaitingCalls(t *testing.B, namespace, handler string) {
	o := b.startPython(t, namespace, "{posting: {disabled: true}, execution: {gracePeriod: 1s}}", `
import asyncio
import itertools
import os
import time

import kopf

waiting = itertools.count(1)
with open("process", "w") as file:
    file.write(str(os.getpid()))


def tell():
    if next(waiting) == `+strconv.Itoa(waitingCalls)+`:
        print("All calls wait.")


@kopf.on.field("kopfexamples", field="spec.wait", new=kopf.PRESENT)
`+handler)
	text, err := os.ReadFile(filepath.Join(o.folder, "process"))
	o.Expect(err).NotTo(gomega.HaveOccurred())
	worker, err := strconv.Atoi(string(text))
	o.Expect(err).NotTo(gomega.HaveOccurred())
	for i := range waitingCalls {
		created := kopftest.Object(object)
		created.SetName(fmt.Sprint("waiting-", i))
		created.SetNamespace(o.name)
		o.Expect(b.client.Create(t.Context(), created)).To(gomega.Succeed())
	}
	const pause = 10 * time.Second
	measure := func(when string) {
		for who, process := range map[string]int{"operator": o.process.Process.Pid, "worker": worker} {
			before := processorTime(o, process)
			<-time.After(pause)
			t.ReportMetric(float64(processorTime(o, process)-before)/float64(pause)*100, who+"-%cpu-"+when)
			t.ReportMetric(float64(residentMemory(o, process))/(1<<20), who+"-MB-"+when)
		}
	}
	measure("at-rest")
	for i := range waitingCalls {
		changed := kopftest.Object(object)
		changed.SetName(fmt.Sprint("waiting-", i))
		changed.SetNamespace(o.name)
		o.Expect(b.client.Patch(t.Context(), changed, client.RawPatch("application/merge-patch+json", []byte(`{"spec": {"wait": true}}`)))).To(gomega.Succeed())
	}
	o.says("All calls wait.")
	measure("waiting")
	o.Expect(o.process.Process.Kill()).To(gomega.Succeed())
	_ = o.process.Wait() // it was killed
}

// residentMemory returns the anonymous part of the memory of a process, in bytes.
func residentMemory(o *operator, process int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", process))
	o.Expect(err).NotTo(gomega.HaveOccurred())
	_, rest, _ := strings.Cut(string(status), "RssAnon:")
	var kilobytes int64
	_, err = fmt.Sscan(rest, &kilobytes)
	o.Expect(err).NotTo(gomega.HaveOccurred())
	return kilobytes << 10
}

// processorTime returns how long a process has worked, in steps of 10 ms.
func processorTime(o *operator, process int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
	o.Expect(err).NotTo(gomega.HaveOccurred())
	_, fields, _ := strings.Cut(string(stat), ") ") // after the name
	const user, system = 11, 12
	values := strings.Fields(fields)
	var ticks int64
	for _, field := range []int{user, system} {
		number, err := strconv.ParseInt(values[field], 10, 64)
		o.Expect(err).NotTo(gomega.HaveOccurred())
		ticks += number
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
