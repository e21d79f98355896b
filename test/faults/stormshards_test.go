package faults

import (
	"context"
	"math/rand/v2"
	"net/http"
	"path"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/settings"
)

// In storms with shards, one operator after the other holds all of them. A new one can come while the last one works still:
// then both have some shards, until the last one dies or stops. In contrast to rivals, no two of them ever handle one
// object, so the storm is as strict as without shards. The uids of the objects, and the identities of the operators, are not
// those of the seed, so such a storm does not repeat exactly.

const (
	// stormShards is the number of shards.
	stormShards = 4
	// shardLease and shardDeadline are longer than those of elections: more is written.
	shardLease    = 3 * time.Second
	shardDeadline = 2 * time.Second
	// mostReliefs limits how often two operators share the objects.
	mostReliefs = 8
)

// sharing returns the settings of replicas with shards.
func (s *storm) sharing() settings.Replicas {
	return settings.Replicas{
		Shards: stormShards, LeaseName: leaseName, LeaseNamespace: s.namespace,
		LeaseDuration: shardLease, RenewDeadline: shardDeadline, RetryPeriod: stormRetry,
	}
}

// relieve starts another operator, which shares the objects with the current one for a while, and has them alone afterwards.
func (s *storm) relieve(last *stormOperator) {
	if last != s.operator || s.hasRivals() || s.reliefs >= mostReliefs {
		return
	}
	s.reliefs++
	dice := s.dice("relief", s.reliefs)
	s.note("%s is relieved", last.name)
	s.start()
	leave := oneOf(dice, (*stormOperator).die, (*stormOperator).stop)
	time.AfterFunc(500*time.Millisecond+upTo(dice, time.Second), func() { leave(last) })
}

// moveDuring lets the operator be relieved in the middle of a call, by chance. The object moves when the call has ended.
func (s *subject) moveDuring(ctx context.Context, o *stormOperator, id string, dice *rand.Rand) {
	if s.storm.shards == 0 || s.storm.steady || s.storm.calm.Load() || id == "timed" || dice.IntN(8) > 0 {
		return
	}
	s.storm.challenged <- o
	select {
	case <-time.After(upTo(dice, 1500*time.Millisecond)):
	case <-ctx.Done():
	}
}

// noteMember keeps the name of the Lease that belongs to the operator alone.
func (o *stormOperator) noteMember(sent *http.Request) {
	if name := path.Base(sent.URL.Path); strings.HasPrefix(name, leaseName+"-replica-") && sent.Method == http.MethodPut {
		o.member.Store(&name)
	}
}

// holdsAll reports whether the current operator has all shards, and no other one is left.
func (s *storm) holdsAll() bool {
	if s.shards == 0 || s.operator == nil {
		return s.shards == 0
	}
	name := s.operator.member.Load()
	if name == nil || s.hasRivals() {
		return false
	}
	list := &coordinationv1.LeaseList{}
	if err := s.cluster.Client().List(context.Background(), list, client.InNamespace(s.namespace)); err != nil {
		s.try(err)
		return false
	}
	identity := ""
	held := map[string]int{}
	for i := range list.Items {
		holder := ptr.Deref(list.Items[i].Spec.HolderIdentity, "")
		switch lease := list.Items[i].Name; {
		case lease == *name:
			identity = holder
		case strings.HasPrefix(lease, leaseName+"-shard-"):
			held[holder]++
		}
	}
	return identity != "" && held[identity] == s.shards
}

// handOver notes that an operator handles the object now. The subject is locked.
func (s *subject) handOver(o *stormOperator) {
	if s.storm.shards > 0 && s.handledBy != o {
		s.note("%s handles the object", o.name)
		s.handledBy = o
		if s.policy.used {
			s.forgetDeletion() // what could not be stored of it was in the memory of the last one
		}
		delete(s.resumed, o) // it can have handled the object before the last one
		s.ledger.Loosen("limited")
	}
}

// isHandledBy reports whether an operator can know what is not stored about the object.
func (s *subject) isHandledBy(o *stormOperator) bool { return s.storm.shards == 0 || s.handledBy == o }

// othersThan returns the operators that must leave the object alone while one of them handles it.
func (s *subject) othersThan(o *stormOperator) (others []*stormOperator) {
	for _, other := range s.storm.everyone() {
		if s.storm.shards > 0 && other != o && !other.dead.Load() {
			others = append(others, other)
		}
	}
	return others
}
