/**
 * Whether a part of the page is still there when something comes back.
 */
import type { RefObject } from "preact"
import { useEffect, useRef } from "preact/hooks"

/** True as soon as the part of the page that calls it is gone, for example a dialog that somebody has closed. */
export const useIsGone = (): RefObject<boolean> => {
  const isGone = useRef(false)
  useEffect(() => () => {
    isGone.current = true
  }, [])
  return isGone
}
