/**
 * Refuses devices and addresses that keep sending wrong signatures
 * (docs/protocol/signatures.md#wrong-signatures, docs/decisions/0059-lock-outs.md).
 */
import { Array, Clock, Context, Effect, Layer, Queue, Result, Schema } from "effect"
import { NodeBus } from "../cluster/NodeBus.ts"
import { DomainError } from "../kernel/DomainError.ts"
import { addressGroup } from "../kernel/NetworkAddress.ts"
import * as Outage from "../kernel/Outage.ts"
import { RateWindow } from "../kernel/RateWindow.ts"
import { ProofTurns } from "./ProofTurns.ts"

/**
 * Both members count the failures for which `isWrong` is true, on all nodes, and
 * fail with `TooManyWrongSignatures` when the suspect's name has failed
 * {@link nameLimit} times from its address within a minute, or the address
 * {@link addressLimit} times. Failures from one address never refuse another. An
 * IPv6 address stands for its network of 64 bits. However many attempts come at
 * once, a node judges no more of them than the limit leaves.
 */
export class SignatureGuard extends Context.Service<SignatureGuard, {
  /**
   * Looks up what the proof is judged by, then judges it. Judging and counting are
   * one step, so nobody waits.
   */
  readonly guard: <A, B, E, E2, R>(
    suspect: Suspect,
    isWrong: (error: E) => boolean,
    lookUp: Effect.Effect<A, E2, R>,
    judge: (found: A) => Result.Result<B, E>
  ) => Effect.Effect<B, E | E2 | TooManyWrongSignatures, R>
  /**
   * Runs a check that takes time. At most as many checks of a name or an address
   * run as the limit leaves; further ones wait for their turn.
   */
  readonly guardSlow: <A, E, R>(
    suspect: Suspect,
    isWrong: (error: E) => boolean,
    check: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E | TooManyWrongSignatures, R>
}>()("@device-cloud/core/provisioning/SignatureGuard") {
  static readonly layer: Layer.Layer<SignatureGuard, never, NodeBus> = Layer.effect(
    SignatureGuard,
    Effect.suspend(() => make)
  )
}

/** Wrong signatures of one name from one address in {@link windowMillis}. */
export const nameLimit = 10
/** Wrong signatures from one address in {@link windowMillis}. */
export const addressLimit = 50
const windowMillis = 60_000
/** Names with addresses, and addresses, that are counted; above this, those that failed longest ago are forgotten. */
const capacity = 100_000
/** Failures that wait until the other nodes are told; of more, the oldest are lost. */
const maxUntold = 1024

/** Too many wrong signatures for this device from this address, or from this address. */
export class TooManyWrongSignatures extends DomainError<TooManyWrongSignatures>()(
  "TooManyWrongSignatures",
  {
    /** Seconds until the caller may try again. */
    retryAfter: Schema.Int
  },
  ({ retryAfter }) => `Too many wrong signatures from this device or address; try again in ${retryAfter} s`
) {}

/** Who presents a proof: the name of a device or a product, and an address. */
export interface Suspect {
  readonly name: string
  /** An IP address, or what stands in for it, for example the id of a gateway. */
  readonly address: string
}

const SignatureFailed = NodeBus.channel(
  "provisioning/wrong-signature",
  // A bus may take equal notices that are published together for one: each says how often.
  Schema.Struct({ node: Schema.String, name: Schema.String, address: Schema.String, times: Schema.Int })
)

const make = Effect.gen(function*() {
  const clock = yield* Clock.Clock
  const now = () => clock.currentTimeMillisUnsafe()
  const channel = yield* SignatureFailed
  const { nodeId: node } = yield* NodeBus
  const names = new RateWindow({ limit: nameLimit, window: windowMillis, capacity })
  const addresses = new RateWindow({ limit: addressLimit, window: windowMillis, capacity })

  const nameKey = ({ address, name }: Suspect): string => `${address} ${name}`

  /** The refusal of a suspect who has failed too often. */
  const refusal = (suspect: Suspect): TooManyWrongSignatures | undefined => {
    const left = Math.max(addresses.fullUntil(suspect.address), names.fullUntil(nameKey(suspect))) - now()
    return left > 0 ? new TooManyWrongSignatures({ retryAfter: Math.ceil(left / 1000) }) : undefined
  }

  const count = (suspect: Suspect) => {
    const at = now()
    names.hit(nameKey(suspect), at)
    addresses.hit(suspect.address, at)
  }

  const outage = Outage.make("Other nodes cannot be told of wrong signatures")
  const untold = yield* Queue.sliding<Suspect>(maxUntold)
  yield* Queue.takeAll(untold).pipe(
    Effect.flatMap((failures) =>
      channel.publish(
        Object.values(Array.groupBy(failures, nameKey)).map((equal) => ({ node, ...equal[0], times: equal.length }))
      )
    ),
    outage.attempted,
    Effect.forever,
    Effect.forkScoped
  )
  yield* channel.subscribe({
    heard: ({ node: other, times, ...suspect }) =>
      Effect.sync(() => {
        if (other === node) return
        for (let i = 0; i < Math.min(times, addressLimit); i++) count(suspect)
      }),
    missed: Effect.void
  })

  const failed = (suspect: Suspect) => {
    count(suspect)
    Queue.offerUnsafe(untold, suspect)
  }

  const turns = new ProofTurns<Suspect, TooManyWrongSignatures>({
    addressOf: ({ address }) => address,
    nameOf: nameKey,
    addressLeft: ({ address }) => addressLimit - addresses.count(address, now()),
    nameLeft: (suspect) => nameLimit - names.count(nameKey(suspect), now()),
    refusal,
    overload: () => new TooManyWrongSignatures({ retryAfter: 1 })
  })

  const counted = ({ address, name }: Suspect): Suspect => ({ name, address: addressGroup(address) })

  return SignatureGuard.of({
    guard: <A, B, E, E2, R>(
      presented: Suspect,
      isWrong: (error: E) => boolean,
      lookUp: Effect.Effect<A, E2, R>,
      judge: (found: A) => Result.Result<B, E>
    ) =>
      Effect.suspend((): Effect.Effect<B, E | E2 | TooManyWrongSignatures, R> => {
        const suspect = counted(presented)
        const refused = refusal(suspect)
        if (refused !== undefined) return Effect.fail(refused)
        return Effect.flatMap(lookUp, (found): Effect.Effect<B, E | TooManyWrongSignatures> => {
          // Others may have failed while this one was looked up.
          const late = refusal(suspect)
          if (late !== undefined) return Effect.fail(late)
          const verdict = judge(found)
          if (Result.isFailure(verdict) && isWrong(verdict.failure)) failed(suspect)
          return Effect.fromResult(verdict)
        })
      }),
    guardSlow: <A, E, R>(presented: Suspect, isWrong: (error: E) => boolean, check: Effect.Effect<A, E, R>) =>
      Effect.suspend(() => {
        const suspect = counted(presented)
        return turns.run(
          suspect,
          Effect.tapError(check, (error) => Effect.sync(() => isWrong(error) ? failed(suspect) : undefined))
        )
      })
  })
})
