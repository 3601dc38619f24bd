/**
 * The history of devices on ClickHouse.
 *
 * ```ts
 * const Storage = HistoryFromFeed.layer.pipe(
 *   Layer.provideMerge(HistoryClickHouse.layer({ url: clickHouseUrl })),
 *   Layer.provideMerge(StoragePg.layer({ url }))
 * )
 * ```
 */
export type { ClickHouseOptions } from "./ClickHouseClient.ts"
export { layer } from "./HistoryStore.ts"
