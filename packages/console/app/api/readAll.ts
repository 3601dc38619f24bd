/**
 * Lists as a whole.
 */

/** Reads all pages of a list. */
export const readAll = async <A>(
  read: (page: { readonly page: number; readonly page_size: number }) => Promise<
    { readonly results: ReadonlyArray<A>; readonly pages: number }
  >
): Promise<ReadonlyArray<A>> => {
  const all: Array<A> = []
  for (let page = 1, pages = 1; page <= pages; page++) {
    const { pages: now, results } = await read({ page, page_size: 100 })
    all.push(...results)
    pages = now
  }
  return all
}
