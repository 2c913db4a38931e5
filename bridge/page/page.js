"use strict";
const timeline = JSON.parse(document.getElementById("data").textContent);
const page = document.getElementById("page");
for (const part of timeline.parts) {
  const heading = document.createElement("h2");
  heading.textContent = part.title;
  const list = document.createElement("ol");
  for (const event of part.events ?? []) {
    const item = document.createElement("li");
    item.id = event.id;
    item.textContent = `${new Date(event.at).toISOString()} ${event.text}`;
    list.append(item);
  }
  page.append(heading, list);
}
