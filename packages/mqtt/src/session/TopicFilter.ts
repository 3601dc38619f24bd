/**
 * Filters with wildcards (MQTT 3.1.1, section 4.7).
 */

/** Whether the filter has a wildcard. */
export const hasWildcard = (filter: string): boolean => /[+#]/.test(filter)

/** Whether `filter` covers `topic`. Neither begins with `$`. */
export const covers = (filter: string, topic: string): boolean => {
  const filterLevels = filter.split("/")
  const topicLevels = topic.split("/")
  return filterLevels.every((level, i) =>
    level === "#" || (i < topicLevels.length && (level === "+" || level === topicLevels[i]))
  ) && (filterLevels.length === topicLevels.length || filterLevels.at(-1) === "#")
}
