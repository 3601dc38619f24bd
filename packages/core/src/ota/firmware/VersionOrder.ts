/**
 * Which of two firmware versions is the older one.
 */

const form = /^(\d+)\.(\d+)\.(\d+)([-.].*)?$/

/**
 * Whether the version is older than `target`. The three numbers decide; if they
 * are the same, one with a `-` and what follows is older than one without. False
 * for a version that does not begin with three numbers: nobody knows.
 */
export const isOlder = (version: string, target: string): boolean => {
  const [own, wanted] = [form.exec(version), form.exec(target)]
  if (own === null || wanted === null) return false
  for (const place of [1, 2, 3]) {
    const difference = Number(own[place]) - Number(wanted[place])
    if (difference !== 0) return difference < 0
  }
  const isEarly = (suffix: string | undefined) => suffix?.startsWith("-") === true
  return isEarly(own[4]) && !isEarly(wanted[4])
}
