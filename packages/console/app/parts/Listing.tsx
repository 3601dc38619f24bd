/**
 * What the API lists page by page, and what deletes one of it.
 */
import type { ComponentChildren } from "preact"
import { useEffect } from "preact/hooks"
import type { QueryState } from "../api/useQuery.ts"
import { formatNumber, useTexts } from "../text/text.ts"
import { ask, type Question } from "./Dialog.tsx"
import { Shown } from "./Shown.tsx"
import { SteadyButton } from "./SteadyButton.tsx"
import { tell } from "./toasts.tsx"
import { useUrl } from "./useUrl.ts"

/** A page of a list, as the API responds it. */
export interface Paged<Row> {
  readonly page: number
  readonly pages: number
  readonly total: number
  readonly results: ReadonlyArray<Row>
}

/** Draws the rows of the page that the address names; `empty` stands where the list has none. */
export const Listing = <Row,>(
  { children, empty, query }: {
    readonly query: QueryState<Paged<Row>>
    readonly empty: ComponentChildren
    readonly children: (rows: ReadonlyArray<Row>) => ComponentChildren
  }
) => (
  <Shown query={query}>
    {({ results, ...place }) =>
      place.total === 0 ? empty : (
        <div class={query.isLoading ? "stack stale" : "stack"} aria-busy={query.isLoading}>
          {children(results)}
          <Pager {...place} />
        </div>
      )}
  </Shown>
)

/** Where one is in a list of many pages. */
export const Pager = ({ page, pages, total }: Omit<Paged<never>, "results">) => {
  const { common } = useTexts()
  const url = useUrl()
  const isPast = page > pages
  // What was on the last page may have been deleted.
  useEffect(() => {
    if (isPast) url.set({ page: pages }, true)
  }, [isPast, pages])
  return (
    <nav class="pager" aria-label={common.pageOf(page, pages)}>
      <span class="soft small">{common.countOf(formatNumber(total))}</span>
      {pages > 1 && (
        <div class="row">
          <SteadyButton isOff={page <= 1} onClick={() => url.set({ page: page - 1 })}>
            {common.previousPage}
          </SteadyButton>
          <span class="small">{common.pageOf(page, pages)}</span>
          <SteadyButton isOff={page >= pages} onClick={() => url.set({ page: page + 1 })}>
            {common.nextPage}
          </SteadyButton>
        </div>
      )}
    </nav>
  )
}

/** Asks, deletes, and says so. `title` is the whole question; it is the name of the button, too. */
export const DeleteButton = (
  { onDeleted, remove, ...question }: Pick<Question, "body" | "title" | "typed"> & {
    readonly remove: () => Promise<unknown>
    readonly onDeleted: () => void
  }
) => {
  const { common } = useTexts()
  const run = async () => {
    await remove()
    tell(common.removed)
    onDeleted()
  }
  return (
    <button
      type="button"
      class="button danger"
      aria-label={question.title}
      onClick={() => ask({ ...question, action: common.remove, danger: true, run })}
    >
      {common.remove}
    </button>
  )
}
