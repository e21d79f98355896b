// Command kopf runs packages of handlers as Kubernetes operators, and pauses and
// resumes operators that are running.
package main

import (
	"os"

	"github.com/kopf-go/kopf/pkg/cli"
)

func main() { os.Exit(cli.KopfMain(startCluster)) }
