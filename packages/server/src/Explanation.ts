/**
 * Explains an error in one line.
 */
import { Effect, Layer } from "effect"
import { InvalidConfig } from "./ServerConfig.ts"

/** Returns the message of an error with the messages of its causes, none twice. */
export const explain = (error: unknown): string => {
  const messages: Array<string> = []
  for (let at = error; at !== undefined; at = at instanceof Error ? at.cause : undefined) {
    const message = at instanceof Error ? at.message : String(at)
    if (!messages.some((said) => said.includes(message))) messages.push(message)
  }
  return messages.join(": ")
}

/** Fails with `InvalidConfig` that names the variables to check when a part cannot be built. */
export const blame = <E>(variables: string, explain: (error: E) => string) => <A, R>(layer: Layer.Layer<A, E, R>) =>
  layer.pipe(
    Layer.catch((error) =>
      Layer.unwrap<A, never, never, InvalidConfig, never>(
        Effect.fail(new InvalidConfig({ message: `${variables}: ${explain(error)}` }))
      )
    )
  )
