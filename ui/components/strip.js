// A document from its first to its last page as one thin bar: the hotter, the more like the query.
// Text of documents is only ever set as textContent.
export default function (component) {
  const { data, setTriggerValue, parentElement } = component
  const bar = parentElement.querySelector(".bar")
  const hint = parentElement.querySelector(".hint")
  bar.setAttribute("aria-label", data.label)
  bar.replaceChildren()
  let active = data.cells.findIndex((cell) => cell.here)

  const show = (index) => {
    const cell = data.cells[index]
    const element = bar.children[index]
    for (const child of bar.children) child.classList.toggle("active", child === element)
    hint.replaceChildren()
    const where = document.createElement("b")
    where.textContent = `${cell.where} · ${cell.score.toFixed(2)}`
    const text = document.createElement("div")
    text.textContent = cell.text
    hint.append(where, text)
    hint.hidden = false
    const room = bar.clientWidth - hint.offsetWidth
    hint.style.left = `${Math.max(0, Math.min(room, element.offsetLeft - hint.offsetWidth / 2))}px`
  }
  const hide = () => {
    hint.hidden = true
    for (const child of bar.children) child.classList.remove("active")
  }
  const go = (index) => setTriggerValue("opened", data.cells[index].target)

  data.cells.forEach((cell, index) => {
    const element = document.createElement("span")
    element.style.flexGrow = cell.size
    element.style.setProperty("--heat", `${Math.round(cell.heat * 100)}%`)
    element.className = cell.here ? "cell here" : "cell"
    element.onmouseenter = () => show(index)
    element.onclick = () => go(index)
    bar.append(element)
  })
  bar.onmouseleave = hide
  bar.onblur = hide
  bar.onfocus = () => bar.matches(":focus-visible") && show(Math.max(active, 0))
  bar.onkeydown = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key]
    if (step !== undefined) {
      active = Math.max(0, Math.min(data.cells.length - 1, Math.max(active, 0) + step))
      show(active)
    } else if (event.key === "Enter" && active >= 0) {
      go(active)
    } else return
    event.preventDefault()
  }
}
