# `make help` lists the targets. You need nothing but Go and git: the tools are Go
# modules, which are built on first use. GOFLAGS and other environment variables
# apply as usual.

EXAMPLE   ?= 01-minimal
CLUSTER   ?= temporary
PACKAGES  ?= ./...
TIMEOUT   ?= 15m
FUZZTIME  ?= 10s
DURATION  ?= 1h
SEEDS     ?= 10000
LATENCY   ?= 200ms
PROCS     ?= 4
BASE      ?=
VERSION   ?= main
ADDRESS   ?= 127.0.0.1:1313
ARGS      ?=
BIN       ?= bin
DIST      ?= dist
REGISTRY  ?= registry.example.com
IMG       ?= registry.example.com/kopf-manager:latest
TESTFLAGS ?=

LINTER := go tool -modfile=hack/tools/go.mod golangci-lint
GINKGO := go tool -modfile=hack/tools/go.mod ginkgo
# Used in recipes as $(WITH_ASSETS) command.
WITH_ASSETS = assets=$$(go run ./hack/envtest --print) && KUBEBUILDER_ASSETS="$$assets"

.SHELLFLAGS := -euc
.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this list
	@awk 'BEGIN { FS = ":.*## " } \
		/^##/ { printf "\n%s\n", substr($$0, 4) } \
		/^[a-z0-9-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@printf '\nVariables, with their values: EXAMPLE=%s CLUSTER=%s PACKAGES=%s TIMEOUT=%s FUZZTIME=%s,\nBIN=%s DIST=%s, ARGS and TESTFLAGS, which are added to the command line, and BASE for make apidiff.\n' \
		'$(EXAMPLE)' '$(CLUSTER)' '$(PACKAGES)' '$(TIMEOUT)' '$(FUZZTIME)' '$(BIN)' '$(DIST)'

## Try it

# The program replaces the shell, so that Ctrl-C and SIGTERM reach it directly.
.PHONY: run
run: ## Run EXAMPLE on a temporary control plane, or with CLUSTER=current on the cluster of your kubeconfig (ARGS of the operator)
	@go build -o bin/dev ./hack/dev
	@exec bin/dev -cluster=$(CLUSTER) $(EXAMPLE) $(ARGS)

## Test it

# Tests have memory, and are short of processors: collecting garbage less often saves a tenth of the time, and test programs
# without the data for debuggers a quarter of the time of the linker.
test test-tools e2e test-memory test-latency test-oldest: export GOGC := $(or $(GOGC),300)
# Some tests build programs of this module, of which the cache of results knows nothing. The tests of some packages wait for
# most of the time, so those of others run meanwhile.
TEST := go test -count=1 -p=$(PROCS) -ldflags=-s -timeout $(TIMEOUT) $(TESTFLAGS)

# The packages that test-tools tests.
TOOLS := ./hack/... ./pkg/cli/scaffold ./examples/languages ./test/bench ./test/integration/deployment ./test/site
LIBRARY = $$(go list ./... | grep -v /test/e2e$$ | grep -vxF "$$(go list $(TOOLS))")

.PHONY: test
test: envtest-assets ## Run the tests of the library and its examples, including those on a real API server (PACKAGES, TESTFLAGS)
	@echo "$(TEST) $(PACKAGES)"
	@$(WITH_ASSETS) $(TEST) $(if $(filter ./...,$(PACKAGES)),$(LIBRARY),$(PACKAGES))
ifeq ($(PACKAGES),./...)
	@KOPF_TEST_SERVER=memory $(TEST) ./test/conformance # what make test-memory runs besides it takes minutes
	@$(MAKE) --no-print-directory e2e TESTFLAGS='$(filter -race,$(TESTFLAGS))'
	@$(WITH_ASSETS) go -C examples/kubebuilder test -timeout $(TIMEOUT) ./... # separate modules
	@go -C otelkopf test $(filter -v -race,$(TESTFLAGS)) ./...
	@go -C examples/storage test -timeout $(TIMEOUT) ./...
endif

.PHONY: test-tools
test-tools: envtest-assets ## Test what is around the library: new projects, workers in other languages, benchmarks, deployments, the site, alerts, and packages
	@$(HUGO) version # the tests of the site need it; its first build takes minutes
	@$(WITH_ASSETS) $(TEST) $(TOOLS)
	@$(MAKE) --no-print-directory test-alerts test-chart test-olm test-dist test-kubebuilder

.PHONY: test-alerts
test-alerts: ## Test the alerts and the dashboard in config/prometheus with the engine of Prometheus
	go -C hack/tools/alerts test $(filter -v,$(TESTFLAGS)) ./...

.PHONY: test-chart
test-chart: ## Test the chart of the manager with the engine of Helm
	go -C hack/tools/chart test $(filter -v,$(TESTFLAGS)) ./...

.PHONY: test-olm
test-olm: ## Test the bundle of the manager with the validators of the Operator Framework
	go -C hack/tools/olm test $(filter -v,$(TESTFLAGS)) ./...

.PHONY: test-dist
test-dist: ## Build a release for this platform, and test what is in it
	go -C hack/tools/dist test $(filter -v,$(TESTFLAGS)) ./...

.PHONY: test-kubebuilder
test-kubebuilder: ## Test the plugin of kubebuilder with kubebuilder
	go -C hack/tools/kubebuilder test $(filter -v,$(TESTFLAGS)) ./...

.PHONY: e2e
e2e: envtest-assets ## Run every example as a program, in PROCS parallel processes, with a JUnit report in bin/ (TESTFLAGS of ginkgo)
	@$(WITH_ASSETS) $(GINKGO) run --procs=$(PROCS) --timeout=$(TIMEOUT) --output-dir=bin --junit-report=e2e.xml $(TESTFLAGS) ./test/e2e

.PHONY: test-race
test-race: override TESTFLAGS += -race
test-race: test test-tools ## Run all tests under the race detector, which needs a C compiler

.PHONY: test-memory
test-memory: ## Run the tests that need a cluster on the API server of the test kit, except those in test/memory.txt (TESTFLAGS)
	@hack/test-memory.sh $(TESTFLAGS)

.PHONY: test-latency
test-latency: envtest-assets ## Run the tests that need a cluster with operators whose requests and watches are up to LATENCY late (TESTFLAGS)
	@$(WITH_ASSETS) TEST_LATENCY=$(LATENCY) go test -timeout $(TIMEOUT) $(TESTFLAGS) ./test/integration/...

.PHONY: test-oldest
test-oldest: ## Run the tests that need a cluster on the oldest Kubernetes that is supported, except that of the kinds of the newest one (TESTFLAGS)
	@assets=$$(go run ./hack/envtest --oldest --print) && export KUBEBUILDER_ASSETS="$$assets" && \
		go test -timeout $(TIMEOUT) $(TESTFLAGS) ./test/conformance $$(go list ./test/integration/... | grep -v /kinds$$) && \
		$(MAKE) --no-print-directory e2e

.PHONY: storm
storm: envtest-assets ## Break operators at random for DURATION, and print the seeds of failures
	@$(WITH_ASSETS) go test -v -timeout 0 ./test/faults -run TestStorm -storm $(DURATION) $(TESTFLAGS)

.PHONY: virtual-storm
virtual-storm: ## Break operators at random in virtual time, SEEDS times, or repeat the storm of one SEED
	@$(if $(SEED),GOMAXPROCS=1 KOPF_TEST_SERVER=memory) go test -v -timeout 0 ./test/faults -run '^TestVirtualStorm$$' $(if $(SEED),-seed $(SEED),-virtual-seeds $(SEEDS)) $(TESTFLAGS)

.PHONY: swap
swap: envtest-assets ## Swap the operators of two builds, or of a build and Kopf, in the middle of their work (ARGS)
	@$(WITH_ASSETS) nice go run ./test/swap $(ARGS)

.PHONY: mutate
mutate: ## Break the write protocol in every small way, and list what no test notices (ARGS: files, -thorough, -storm)
	@nice -n 10 go run ./hack/mutate $(ARGS)

.PHONY: fuzz
fuzz: ## Fuzz every target in PACKAGES, for FUZZTIME each
	@hack/fuzz.sh $(FUZZTIME) $(PACKAGES)

.PHONY: bench
bench: envtest-assets ## Run the benchmarks, and compare with a hand-written reconciler (ARGS)
	go test -run '^$$' -bench . -benchmem $(TESTFLAGS) ./pkg/...
	@$(WITH_ASSETS) go run ./test/bench $(ARGS)
	@$(WITH_ASSETS) go test -timeout 30m -count 1 -run ManyFamilies -v ./test/integration/ensure -families 1000

.PHONY: envtest-assets
envtest-assets: ## Build kube-apiserver, etcd, and kubectl, unless they are in KUBEBUILDER_ASSETS or in your cache
	@go run ./hack/envtest

## Read it

HUGO := go tool -modfile=hack/tools/hugo/go.mod hugo

.PHONY: docs
docs: ## Build the documentation site in bin/site: VERSION=main (the work tree), a tag, or all
	@go run ./hack/site -versions='$(VERSION)'

.PHONY: docs-serve
docs-serve: ## Build the site, and serve it on ADDRESS
	@go run ./hack/site -versions='$(VERSION)' -serve='$(ADDRESS)'

.PHONY: docs-check
docs-check: docs ## Build the site, and look at it with headless Chromium, which must be in your PATH (ARGS: -screenshots DIR)
	@go -C test/site/browser test -count=1 . -args -site='$(CURDIR)/bin/site' $(ARGS)

.PHONY: picture
picture: envtest-assets ## Run the first example, and renew the picture of it in README.md
	@$(WITH_ASSETS) KOPF_UPDATE_GOLDEN=1 go test -count=1 -run TestThePicture ./hack/dev

.PHONY: page-pictures
page-pictures: envtest-assets ## Look at the page of an operator with headless Chromium, and renew the pictures of it in docs/images
	@$(WITH_ASSETS) KOPF_PAGE_PICTURES='$(CURDIR)/docs/images' go test -count=1 -v -run TestTheBrowser ./test/integration/page

.PHONY: diagrams
diagrams: ## Draw the diagrams of the documents again, which needs npm and Chromium
	@go run ./hack/site -diagrams

## Deploy the example manager

KUSTOMIZE       := go tool -modfile=hack/tools/go.mod kustomize
KUBECTL         ?= kubectl
CONTAINER_TOOL  ?= docker
# The manifests with the image IMG.
WITH_IMAGE = sed 's|image: registry.example.com/kopf-manager:latest|image: $(IMG)|'

.PHONY: build
build: ## Build the manager, the command kopf, and the plugin for kubectl with its completion in BIN
	go build -trimpath -o $(BIN)/manager ./cmd/manager
	go build -trimpath -o $(BIN)/kopf ./cmd/kopf
	ln -sf kopf $(BIN)/kubectl-kopf
	ln -sf kopf $(BIN)/kubectl_complete-kopf

.PHONY: docker-build
docker-build: ## Build the image IMG of the manager (CONTAINER_TOOL)
	$(CONTAINER_TOOL) build --tag $(IMG) .

.PHONY: docker-push
docker-push: ## Push the image IMG
	$(CONTAINER_TOOL) push $(IMG)

.PHONY: install
install: ## Install the resource definitions in the cluster of your kubeconfig (KUBECTL)
	@{ $(KUSTOMIZE) build config/crd; echo ---; $(KUSTOMIZE) build config/crd/example; } | $(KUBECTL) apply --server-side -f -

.PHONY: uninstall
uninstall: ## Remove the resource definitions, with all their objects
	@{ $(KUSTOMIZE) build config/crd; echo ---; $(KUSTOMIZE) build config/crd/example; } | $(KUBECTL) delete --ignore-not-found -f -

.PHONY: deploy
deploy: ## Deploy the manager, with the image IMG
	@$(KUSTOMIZE) build config/default | $(WITH_IMAGE) | $(KUBECTL) apply --server-side -f -

.PHONY: undeploy
undeploy: ## Remove the manager, and the resource definitions with all their objects
	@$(KUSTOMIZE) build config/default | $(KUBECTL) delete --ignore-not-found -f -

.PHONY: build-installer
build-installer: ## Write all manifests with the image IMG to DIST/install.yaml
	@mkdir -p $(DIST)
	@$(KUSTOMIZE) build config/default | $(WITH_IMAGE) >$(DIST)/install.yaml

.PHONY: dist
dist: ## Build everything that the release VERSION has in DIST/VERSION: programs, images, manifests, checksums (REGISTRY of the images)
	@go -C hack/tools/dist run . -root='$(CURDIR)' -out='$(abspath $(DIST))/$(VERSION)' -version='$(VERSION)' -registry='$(REGISTRY)' $(ARGS)

## Change it

.PHONY: fmt
fmt: ## Format all sources
	$(LINTER) fmt

.PHONY: lint
lint: ## Run the linters
	$(LINTER) run --allow-parallel-runners
	@linter=$$($(subst tool ,tool -n ,$(LINTER))) && for module in examples/kubebuilder otelkopf; do (cd $$module && "$$linter" run --allow-parallel-runners) || exit 1; done # separate modules

.PHONY: manifests
manifests: ## Regenerate the files that are generated from the sources
	go generate ./...
	@$(MAKE) --no-print-directory -C examples/kubebuilder generate manifests

.PHONY: verify
verify: ## Run all checks that are not tests: vet, linters, modules, manifests, generated files, API record
	@hack/verify.sh

.PHONY: govulncheck
govulncheck: ## Look for known vulnerabilities in the dependencies, in a database on the internet
	go tool -modfile=hack/tools/go.mod govulncheck ./...

.PHONY: api
api: ## Record the API of the packages that users rely on, in api/
	go run ./hack/api

.PHONY: apidiff
apidiff: ## Report the API changes since BASE, or since the last tag; fail if one breaks users
	@hack/apidiff.sh $(BASE)

.PHONY: house
house: ## Measure how the code reads (ARGS: -compare DIR)
	@go run ./hack/house $(ARGS)
