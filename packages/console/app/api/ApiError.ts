/**
 * A request that failed.
 */

/** The paths of refused fields, each with what was expected of it. */
export type Issues = Readonly<Record<string, ReadonlyArray<string>>>

/** The code when files of the console do not come: the server is away, or serves another version of it by now. */
export const filesMissing = -1

/** What the API refused; `message` is its own sentence. Code 0: the server was not reached, or something in between has answered. */
export class ApiError extends Error {
  override readonly name = "ApiError"
  readonly code: number
  readonly data: Readonly<Record<string, unknown>>

  constructor(code: number, message: string, data: Readonly<Record<string, unknown>> = {}) {
    super(message)
    this.code = code
    this.data = data
  }

  /** What is wrong with which field of the body. */
  get issues(): Issues {
    return (this.data["issues"] ?? {}) as Issues
  }

  /** Whether what the address names is not there. */
  get isMissing(): boolean {
    return this.code >= 40400 && this.code < 40500
  }

  /** Whether the session has ended. */
  get isEnd(): boolean {
    return this.code === 40100 || this.code === 40101
  }

  /** Whether the server is away, or has no room for now. */
  get isPassing(): boolean {
    return this.code === 0 || this.code === 42900 || this.code >= 50000
  }
}
