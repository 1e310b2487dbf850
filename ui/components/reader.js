// A page's text, letter for letter, scrolled to what is marked.
export default function (component) {
  const { data, parentElement } = component
  const page = parentElement.querySelector(".page")
  page.replaceChildren()
  let first = null
  for (const [text, isMarked] of data.pieces) {
    const element = document.createElement(isMarked ? "mark" : "span")
    element.textContent = text
    page.append(element)
    if (isMarked && !first) first = element
  }
  page.scrollTop = 0
  if (first) {
    const offset = first.getBoundingClientRect().top - page.getBoundingClientRect().top
    page.scrollTop = Math.max(0, offset - page.clientHeight / 3)
  }
}
