/**
 * The state of a page that its address carries: it can be sent to somebody, and the
 * back button returns to it.
 */
import { useLocation } from "preact-iso"
import { useCallback } from "preact/hooks"

/** What the address has after `?`. */
export interface UrlState {
  /** The value, or an empty text. */
  readonly get: (name: string) => string
  /** A whole number from 1, or 1. */
  readonly page: number
  /**
   * Changes values; an empty one is left out. A change of a filter begins at the
   * first page again. `replace`: the back button skips this change, as when one types.
   */
  readonly set: (values: Readonly<Record<string, string | number | undefined>>, replace?: boolean) => void
}

export const useUrl = (): UrlState => {
  const { path, query, route } = useLocation()
  const set = useCallback((values: Readonly<Record<string, string | number | undefined>>, replace = false) => {
    // The address itself, because several changes may come before the page is drawn again.
    const search = new URLSearchParams(location.search)
    if (!("page" in values)) search.delete("page")
    for (const [name, value] of Object.entries(values)) {
      if (value === undefined || value === "") search.delete(name)
      else search.set(name, String(value))
    }
    route(search.size === 0 ? path : `${path}?${search}`, replace)
  }, [path, route])
  const page = Number(query["page"])
  return {
    get: (name) => query[name] ?? "",
    page: Number.isSafeInteger(page) && page > 0 ? page : 1,
    set
  }
}
