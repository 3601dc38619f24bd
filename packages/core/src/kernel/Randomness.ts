/**
 * Port: the cryptographic randomness of the platform. It is a port of the core,
 * because Effect's own moved between its versions
 * (docs/decisions/0074-effect-4-0-and-4-1.md).
 */
import { Context } from "effect"

export class Randomness extends Context.Service<Randomness, {
  /** Returns `size` bytes that nobody can predict. */
  readonly bytes: (size: number) => Uint8Array
}>()("@device-cloud/core/kernel/Randomness") {}
