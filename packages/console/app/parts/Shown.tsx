/**
 * What a read from the API looks like while it runs, when it has failed, and when
 * it is there.
 */
import type { ComponentChildren } from "preact"
import { type ApiError, filesMissing } from "../api/ApiError.ts"
import type { QueryState } from "../api/useQuery.ts"
import { useTexts } from "../text/text.ts"
import { Empty } from "./Page.tsx"

/** Shows what was read. What was there before stays in view while it is read again. */
export const Shown = <A,>(
  { children, query }: { readonly query: QueryState<A>; readonly children: (data: A) => ComponentChildren }
) => {
  const { common } = useTexts()
  const { data, error, isLoading, reload } = query
  const retry = error?.code === filesMissing ? () => location.reload() : error?.isPassing ? reload : undefined
  return (
    <>
      {error !== undefined && (error.isMissing && data === undefined
        ? <Empty title={error.message}>{common.notFoundHint}</Empty>
        : <Failure error={error} onRetry={retry} />)}
      {data !== undefined
        ? children(data)
        : isLoading && <p class="loading" role="status">{common.loading}</p>}
    </>
  )
}

/** The API's own sentence. */
export const Failure = (
  { error, onRetry }: { readonly error: ApiError; readonly onRetry?: (() => void) | undefined }
) => {
  const { common } = useTexts()
  const requestId = error.data["request_id"]
  return (
    <div class="notice bad row apart" role="alert">
      <div class="wrap">
        {error.message}
        {error.code > 0 && (
          <span class="soft small">
            {" "}
            ({common.code(error.code)}
            {typeof requestId === "string" && `, ${requestId}`})
          </span>
        )}
      </div>
      {onRetry !== undefined && <button type="button" class="button small" onClick={onRetry}>{common.tryAgain}</button>}
    </div>
  )
}
