/**
 * Uploads with their progress, which `fetch` does not tell.
 */
import { texts } from "../text/text.ts"
import { ApiError } from "./ApiError.ts"
import { dataOf, errorOf, request } from "./client.ts"

/** What the server says of a firmware file that it has stored. */
export interface StoredFile {
  readonly filename: string
  readonly size: number
  readonly md5: string
}

/** Stores a firmware file of a product. `onProgress` gets the share that is sent, 0 to 1. Undefined: `signal` has broken it off. */
export const uploadFirmware = (
  productKey: string,
  file: File,
  onProgress: (share: number) => void,
  signal: AbortSignal
): Promise<StoredFile | undefined> =>
  new Promise((resolve, reject) => {
    const request = new XMLHttpRequest()
    request.open("POST", `/openapi/v1/oss/ota/${encodeURIComponent(productKey)}`)
    request.setRequestHeader("x-csrf-protection", "1")
    request.upload.addEventListener("progress", ({ loaded, total }) => onProgress(total === 0 ? 1 : loaded / total))
    request.addEventListener("error", async () => {
      const { fileUnreadable, unreachable } = texts().common
      reject(new ApiError(0, await isReadable(file) ? unreachable : fileUnreadable))
    })
    request.addEventListener(
      "load",
      () => resolve(storedFile(new Response(request.responseText || null, { status: request.status })))
    )
    signal.addEventListener("abort", () => {
      request.abort()
      resolve(undefined)
    })
    const form = new FormData()
    form.append("file", file)
    request.send(form)
  })

/** Whether a file is still where it was when it was chosen. */
const isReadable = (file: File): Promise<boolean> => {
  const reader = file.stream().getReader()
  return reader.read().then(() => true, () => false).finally(() => void reader.cancel().catch(() => {}))
}

/** Removes a stored file. */
export const removeFile = async ({ filename }: StoredFile): Promise<void> => {
  await request(new URL(filename).pathname, { method: "DELETE" })
}

const storedFile = async (response: Response): Promise<StoredFile> => {
  if (!response.ok) throw await errorOf(response)
  return await dataOf(response) as StoredFile
}
