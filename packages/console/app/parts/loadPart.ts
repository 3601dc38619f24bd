/**
 * Code of the console that a page loads when it needs it.
 */
import { ApiError, filesMissing } from "../api/ApiError.ts"
import { texts } from "../text/text.ts"

/** Loads it. Fails with `filesMissing` in the language of the viewer. */
export const loadPart = async <A>(load: () => Promise<A>): Promise<A> => {
  try {
    return await load()
  } catch {
    throw new ApiError(filesMissing, texts().common.notLoadedHint)
  }
}
