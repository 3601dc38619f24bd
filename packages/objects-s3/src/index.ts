/**
 * The objects of Device Cloud on an S3-compatible object storage.
 */
export type { BucketOptions } from "./Bucket.ts"
export { layer } from "./ObjectStore.ts"
